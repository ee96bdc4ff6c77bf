import type { Command } from 'commander';
import { setKeyPlan } from '../../keys/keys.js';
import { revokeKey } from '../../keys/revoke.js';
import { rollKey } from '../../keys/roll-key.js';
import { addJsonCommand } from '../add-json-command.js';
import { overlap as toOverlap, planId } from '../arguments.js';
import { changeCallers } from '../change-callers.js';
import type { CommandContext } from '../context.js';
import { printJson, printLine, shortTime } from '../output.js';
import { readPrefix, readPrefixOrKey } from './key-argument.js';
import { keyToJson } from './key-output.js';

const PREFIX_HELP = 'what "catalog keys list" shows: svc_ and 8 characters';

/** Adds `set-plan`, `roll` and `revoke` to `catalog keys`. */
export function registerKeyChanges(keys: Command, context: CommandContext): void {
  const { stdout } = context;

  addJsonCommand(keys, 'set-plan', 'catalog keys set-plan svc_1a2B3c4D --plan pro')
    .description('put a key on another plan. Holds from the next request on')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption('--plan <plan>', 'the plan that sets its limits', planId)
    .action(async (argument: string, { plan, json }: { plan: string; json?: boolean }, command: Command) => {
      const prefix = readPrefix(argument, command);
      const { changed: moved, since } = await changeCallers(context, (db) => setKeyPlan(db, prefix, plan));
      const { record, previousPlanId } = moved;
      const changed = previousPlanId !== plan;
      if (json) printJson(stdout, { ...keyToJson(record), changed });
      else if (!changed) printLine(stdout, `Key ${prefix} is on plan ${plan} already.`);
      else printLine(stdout, `Moved ${prefix} from plan ${previousPlanId} to ${plan}. The new plan applies ${since}.`);
    });

  addJsonCommand(keys, 'roll', 'catalog keys roll svc_1a2B3c4D --overlap 24h')
    .description('replace a key by a new one and print that: this once. The old key goes on for the overlap')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption('--overlap <duration>', 'how long the old key goes on: now, or a duration such as 24h', toOverlap)
    .addHelpText('after', '\nThe new key has the label and the plan of the old one, and expires after the same time.')
    .action(async (argument: string, { overlap, json }: { overlap: number; json?: boolean }, command: Command) => {
      const prefix = readPrefix(argument, command);
      const { changed, since } = await changeCallers(context, (db) => rollKey(db, prefix, overlap));
      const { successor, predecessor } = changed;
      const { key, ...record } = successor;
      if (json) printJson(stdout, { key, ...keyToJson(record), predecessor: keyToJson(predecessor) });
      else {
        const end = overlap === 0 ? `refused ${since}` : `accepted until ${shortTime(predecessor.expiresAt) ?? ''}`;
        printLine(stdout, `Rolled ${prefix}: it is ${end}. Its successor ${record.prefix} is shown this once:`);
        printLine(stdout, `  ${key}`);
      }
    });

  addJsonCommand(keys, 'revoke', 'catalog keys revoke svc_1a2B3c4D', 'catalog keys revoke - < leaked-key.txt')
    .description('refuse a key permanently, from the next request on')
    .argument('<prefix>', `${PREFIX_HELP}; - reads the prefix or the whole key from standard input`)
    .action(async (argument: string, { json }: { json?: boolean }, command: Command) => {
      // A key that was revoked before gets a new epoch too: the operator may repeat a command that could not set one.
      const which = await readPrefixOrKey(argument, context.stdin, command);
      const { changed: record, since } = await changeCallers(context, (db) => revokeKey(db, which));
      if (json) printJson(stdout, keyToJson(record));
      else printLine(stdout, `Revoked ${record.prefix}. It is refused ${since}, permanently.`);
    });
}
