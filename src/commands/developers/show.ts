import type { Command } from 'commander';
import { listIdentities } from '../../accounts/identities.js';
import { listPasskeys, type Passkey } from '../../accounts/passkeys.js';
import { countSessions } from '../../accounts/sessions.js';
import { findDeveloper } from '../../developers/developers.js';
import { listEvents } from '../../events/events.js';
import { isAccepted } from '../../keys/key-record.js';
import { listKeys } from '../../keys/keys.js';
import { positiveInteger } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { addJsonCommand, report } from '../report.js';
import { details, shortTime, table } from '../table.js';
import { EVENT_COLUMNS } from './events.js';
import { KEY_COLUMNS, keyDocument } from './key-document.js';

/** How many of the latest events are shown. */
const EVENTS = 10;

/** `catalog developers show` */
export function registerShow(developers: Command, { stdout, withDatabase }: CommandContext): void {
  addJsonCommand(developers, 'show', 'catalog developers show 1')
    .description('Show a developer with their keys, ways to sign in and latest events.')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const { developer, identities, passkeys, sessions, keys, events } = await withDatabase(async (db) => ({
        developer: await findDeveloper(db, id),
        identities: await listIdentities(db, id),
        passkeys: await listPasskeys(db, id),
        sessions: await countSessions(db, id),
        keys: await listKeys(db, id),
        events: await listEvents(db, { developerId: id, limit: EVENTS }),
      }));
      const { suspendedAt } = developer;
      const { developer: _, ...keyColumns } = KEY_COLUMNS;
      const { developer: __, ...eventColumns } = EVENT_COLUMNS;
      const sections = [
        details({
          developer: id,
          'project name': developer.projectName,
          state: suspendedAt === null ? 'active' : `suspended ${shortTime(suspendedAt) ?? ''}`,
          'plan of new keys': developer.planId,
          'attribution required': developer.attributionRequired,
          created: shortTime(developer.createdAt),
          identities: identities.map(({ issuer, subject }) => `${subject} at ${issuer}`).join(', ') || null,
          passkeys: passkeys.map(describePasskey).join(', ') || null,
          sessions,
          keys: `${keys.filter(isAccepted).length} active, ${keys.length} in all`,
        }),
        ...(keys.length > 0 ? [table(keys, keyColumns, stdout)] : []),
        table(events, eventColumns, stdout),
      ];
      const document = { developer, identities, passkeys, sessions, keys: keys.map(keyDocument), events };
      report(stdout, json, document, sections.join('\n\n'));
    });
}

function describePasskey({ name, lastUsedAt }: Passkey): string {
  return `${name} (${lastUsedAt === null ? 'never used' : `last used ${shortTime(lastUsedAt) ?? ''}`})`;
}
