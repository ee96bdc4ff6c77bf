import { Option, type Command } from 'commander';
import type { Knex } from 'knex';
import { findDeveloper } from '../../developers/developers.js';
import { setKeyExpiry, setKeyLabel, setKeyPlan, type EditedKey } from '../../keys/edit-key.js';
import type { Expiry } from '../../keys/expiry.js';
import type { KeyRecord } from '../../keys/key-record.js';
import { createKey, listKeys, type CreatedKey } from '../../keys/keys.js';
import { revokeKey } from '../../keys/revoke.js';
import { rollKey } from '../../keys/roll-key.js';
import { readChunks } from '../../platform/async/chunks.js';
import {
  expiryOrNever,
  label as toLabel,
  labelOrNone,
  overlap as toOverlap,
  planId,
  positiveInteger,
} from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { shortTime } from '../output/table.js';
import { EXAMPLE_PREFIX, PREFIX_HELP, prefixOf, prefixOrKeyOf } from './key-argument.js';
import { KEY_COLUMNS, keyDocument } from './key-document.js';

interface CreateOptions {
  developer?: number;
  plan?: string;
  label?: string;
  expires?: Expiry | 'never';
  demo?: boolean;
}

interface ListOptions extends JsonFlag {
  developer?: number;
  search?: string;
  limit?: number;
}

/** `catalog keys create|list|roll|revoke|set-plan|set-label|set-expiry` */
export const registerKeys: RegisterCommand = (program, context) => {
  const keys = program.command('keys').description('Manage API keys.');
  addCreate(keys, context);
  addList(keys, context);
  addRoll(keys, context);
  addRevoke(keys, context);
  addEdits(keys, context);
};

function addCreate(keys: Command, context: CommandContext): void {
  addJsonCommand(keys, 'create', [
    'catalog keys create --developer 1 --plan free --label production',
    'catalog keys create --developer 1 --plan free --expires 90d',
  ])
    .description('Create a key and print it once. Only its hash is stored.')
    .option('--developer <id>', 'id of the developer who owns the key; required without --demo', positiveInteger)
    .option('--plan <plan>', 'plan that sets its limits; required without --demo', planId)
    .option('--label <text>', 'label for your own reference, such as the environment that uses the key', toLabel)
    .option('--expires <when>', 'expiry: a duration such as 90d, a date or time in UTC, or never', expiryOrNever)
    .addOption(
      new Option(
        '--demo',
        'create a key for the demo developer; cannot be combined with --developer, --plan, --label or --expires',
      ).conflicts(['developer', 'plan', 'label', 'expires']),
    )
    .reports(context, async ({ developer, plan, label, demo, ...options }: CreateOptions, command: Command) => {
      const expires = options.expires === 'never' ? undefined : options.expires;
      if (!demo && developer === undefined) command.error("error: required option '--developer <id>' not specified");
      if (!demo && plan === undefined) command.error("error: required option '--plan <plan>' not specified");
      const created = await makeChange(context, async (db) =>
        developer === undefined
          ? (await import('../server/demo.js')).createDemoKey(db)
          : createKey(db, { developerId: developer, planId: plan, label, expires }),
      );
      if (created.isSuspended) {
        const { developerId: id } = created;
        context.stderr.write(
          `catalog: Developer ${id} is suspended: the key is rejected until "${context.command} developers reinstate ${id}".\n`,
        );
      }
      const end = created.expiresAt === null ? '' : `; it expires at ${shortTime(created.expiresAt) ?? ''}`;
      const what = `Created ${created.prefix} on plan ${created.planId}${end}.`;
      return [newKeyDocument(created), `${what} The key is shown only once; keep it safe:\n  ${created.key}`];
    });
}

function addList(keys: Command, context: CommandContext): void {
  addJsonCommand(keys, 'list', ['catalog keys list --developer 1', 'catalog keys list --search staging --limit 20'])
    .description('List keys, each identified by its prefix, oldest first.')
    .option('--developer <id>', 'keys of one developer only', positiveInteger)
    .option('--search <text>', 'only those with this text in their label or prefix, in upper or lower case')
    .option('--limit <number>', 'maximum number of keys; all without it', positiveInteger)
    .action(({ developer, search, limit = Infinity, json }: ListOptions) => {
      const read = async function* (db: Knex) {
        if (developer !== undefined) await findDeveloper(db, developer);
        yield* readChunks<KeyRecord>(limit, (after, most) => listKeys(db, developer, { after, search, limit: most }));
      };
      return reportRows(context, json, read, { name: 'keys', columns: KEY_COLUMNS, toDocument: keyDocument });
    });
}

function addRoll(keys: Command, context: CommandContext): void {
  const rollNotes =
    'The new key keeps the label and plan of the old one. If the old key expires, the new key gets the same lifetime.';
  addJsonCommand(keys, 'roll', `catalog keys roll ${EXAMPLE_PREFIX} --overlap 24h`, rollNotes)
    .description('Replace a key and print its successor once. The old key keeps working until the overlap ends.')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption(
      '--overlap <duration>',
      'how long the old key keeps working: now, or a duration such as 24h',
      toOverlap,
    )
    .reports(context, async (argument: string, { overlap }: { overlap: number }, command: Command) => {
      const prefix = prefixOf(argument, command);
      const roll = (db: Knex) => rollKey(db, prefix, overlap);
      const { successor, predecessor } = await makeChange(context, roll, (rolled) => ownerOf(rolled.predecessor));
      const end = overlap === 0 ? 'refused from now on' : `accepted until ${shortTime(predecessor.expiresAt) ?? ''}`;
      const lines = `Rolled ${prefix}. The old key is ${end}. Its successor ${successor.prefix} is shown only once:`;
      const document = { ...newKeyDocument(successor), predecessor: keyDocument(predecessor) };
      return [document, `${lines}\n  ${successor.key}`];
    });
}

function addRevoke(keys: Command, context: CommandContext): void {
  addJsonCommand(keys, 'revoke', [`catalog keys revoke ${EXAMPLE_PREFIX}`, 'catalog keys revoke - < leaked-key.txt'])
    .description('Revoke a key permanently. When this is done, every server refuses it.')
    .argument('<prefix>', `${PREFIX_HELP}; - reads the prefix or the whole key from standard input`)
    .reports(context, async (argument: string, _options: object, command: Command) => {
      const which = await prefixOrKeyOf(argument, context.stdin, command);
      const record = await makeChange(context, (db) => revokeKey(db, which), ownerOf);
      const line = record.wasRevoked
        ? `${record.prefix} was already revoked at ${shortTime(record.revokedAt) ?? ''}.`
        : `Revoked ${record.prefix}. Requests with it fail from now on.`;
      return [keyDocument(record), line];
    });
}

function addEdits(keys: Command, context: CommandContext): void {
  const ownerOfEdited = ({ after }: EditedKey) => ownerOf(after);

  addJsonCommand(keys, 'set-plan', `catalog keys set-plan ${EXAMPLE_PREFIX} --plan pro`)
    .description('Move a key to another plan.')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption('--plan <plan>', 'plan that sets its limits', planId)
    .reports(context, async (argument: string, { plan }: { plan: string }, command: Command) => {
      const prefix = prefixOf(argument, command);
      const { before, after } = await makeChange(context, (db) => setKeyPlan(db, prefix, plan), ownerOfEdited);
      const changed = before.planId !== plan;
      const moved = `Moved ${prefix} from plan ${before.planId} to ${plan}. The new limits apply from now on.`;
      return [{ ...keyDocument(after), changed }, changed ? moved : `Key ${prefix} is already on plan ${plan}.`];
    });

  addJsonCommand(keys, 'set-label', [
    `catalog keys set-label ${EXAMPLE_PREFIX} "production, eu-west"`,
    `catalog keys set-label ${EXAMPLE_PREFIX} ""`,
  ])
    .description('Change the label of an active key.')
    .argument('<prefix>', PREFIX_HELP)
    .argument('<label>', 'new label; "" removes it', labelOrNone)
    .reports(context, async (argument: string, label: string | null, _options: object, command: Command) => {
      const prefix = prefixOf(argument, command);
      const { before, after } = await makeChange(context, (db) => setKeyLabel(db, prefix, label));
      const changed = before.label !== label;
      const has = `${changed ? 'now' : 'already'} has ${label === null ? 'no label' : `the label "${label}"`}`;
      return [{ ...keyDocument(after), changed }, `Key ${prefix} ${has}.`];
    });

  addJsonCommand(
    keys,
    'set-expiry',
    ['90d', '2027-01-31T18:00Z', 'never'].map((when) => `catalog keys set-expiry ${EXAMPLE_PREFIX} ${when}`),
    'A key that has expired stays expired. To end a key at once, use "catalog keys revoke".',
  )
    .description('Change when an active key expires, to an earlier or a later time.')
    .argument('<prefix>', PREFIX_HELP)
    .argument('<when>', 'a duration from now such as 90d, a date or time in UTC, or never', expiryOrNever)
    .reports(context, async (argument: string, when: Expiry | 'never', _options: object, command: Command) => {
      const prefix = prefixOf(argument, command);
      const expires = when === 'never' ? null : when;
      const { before, after } = await makeChange(context, (db) => setKeyExpiry(db, prefix, expires), ownerOfEdited);
      const changed = before.expiresAt !== after.expiresAt;
      const expiry = after.expiresAt === null ? 'never expires' : `expires at ${shortTime(after.expiresAt) ?? ''}`;
      return [{ ...keyDocument(after), changed }, `Key ${prefix} ${changed ? 'now' : 'already'} ${expiry}.`];
    });
}

/** @returns the developer whose callers change with a key */
function ownerOf({ developerId }: KeyRecord): readonly number[] {
  return [developerId];
}

function newKeyDocument(created: CreatedKey): object {
  return { key: created.key, ...keyDocument(created) };
}
