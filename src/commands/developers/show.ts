import type { Command } from 'commander';
import { listIdentities } from '../../accounts/identities.js';
import { listPasskeys, type Passkey } from '../../accounts/passkeys.js';
import { countSessions, listSessions, type ListedSession } from '../../accounts/sessions.js';
import { findDeveloper } from '../../developers/developers.js';
import { listEvents } from '../../events/events.js';
import { isAccepted } from '../../keys/key-record.js';
import { listKeys } from '../../keys/keys.js';
import { readUsageByDeveloper } from '../../usage/usage-totals.js';
import { positiveInteger } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { addJsonCommand, report } from '../output/report.js';
import { age, details, shortTime, table, type Columns } from '../output/table.js';
import { EVENT_COLUMNS } from './events.js';
import { KEY_COLUMNS, keyDocument } from './key-document.js';

/** How many of the latest sessions and events are shown. */
const LATEST = 10;

/** How many days of requests are added up. */
const USAGE_DAYS = 30;

const SESSION_COLUMNS: Columns<ListedSession> = {
  'signed in': ({ signedInAt }) => age(signedInAt),
  with: ({ way }) => way,
  'last seen': ({ lastSeenAt }) => age(lastSeenAt),
  browser: ({ userAgent }) => userAgent || null,
};

/** `catalog developers show` */
export function registerShow(developers: Command, { stdout, withDatabase }: CommandContext): void {
  addJsonCommand(developers, 'show', 'catalog developers show 1')
    .description('Show a developer with their requests, keys, ways to sign in, sessions and latest events.')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const { developer, usage, identities, passkeys, sessionsInAll, sessions, keys, events } = await withDatabase(
        async (db) => ({
          developer: await findDeveloper(db, id),
          usage: (await readUsageByDeveloper(db, { days: USAGE_DAYS, developerId: id }))[0],
          identities: await listIdentities(db, id),
          passkeys: await listPasskeys(db, id),
          sessionsInAll: await countSessions(db, id),
          sessions: await listSessions(db, id, { limit: LATEST, offset: 0 }),
          keys: await listKeys(db, id),
          events: await listEvents(db, { developerId: id, limit: LATEST }),
        }),
      );
      const { suspendedAt } = developer;
      const { served = 0, refused = 0, failed = 0 } = usage ?? {};
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
          sessions: sessionsInAll,
          [`requests in ${USAGE_DAYS} days`]: `${served + refused + failed}, ${refused} refused, ${failed} failed`,
          keys: `${keys.filter(isAccepted).length} active, ${keys.length} in all`,
        }),
        ...(keys.length > 0 ? [table(keys, keyColumns, stdout)] : []),
        ...(sessions.length > 0 ? [table(sessions, SESSION_COLUMNS, stdout)] : []),
        table(events, eventColumns, stdout),
      ];
      const document = {
        developer,
        usage: { days: USAGE_DAYS, served, refused, failed },
        identities,
        passkeys,
        sessions,
        sessionsInAll,
        keys: keys.map(keyDocument),
        events,
      };
      report(stdout, json, document, sections.join('\n\n'));
    });
}

function describePasskey({ name, lastUsedAt }: Passkey): string {
  return `${name} (${lastUsedAt === null ? 'never used' : `last used ${shortTime(lastUsedAt) ?? ''}`})`;
}
