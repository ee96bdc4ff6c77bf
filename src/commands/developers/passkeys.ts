import type { Command } from 'commander';
import { listPasskeys, revokePasskey } from '../../accounts/passkeys.js';
import { findDeveloper } from '../../developers/developers.js';
import { positiveInteger } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { makeChange, UNCACHED } from '../make-change.js';
import { addJsonCommand, report } from '../output/report.js';
import { age, table } from '../output/table.js';
import { countOf } from '../../platform/text/count.js';

/** `catalog developers passkeys|remove-passkey` */
export function registerPasskeys(developers: Command, context: CommandContext): void {
  const { stdout, withDatabase } = context;

  addJsonCommand(developers, 'passkeys', 'catalog developers passkeys 1')
    .description('List the passkeys that can sign in as a developer.')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const passkeys = await withDatabase(async (db) => {
        await findDeveloper(db, id);
        return listPasskeys(db, id);
      });
      const lines = table(
        passkeys,
        {
          passkey: (passkey) => passkey.id,
          name: ({ name }) => name,
          synced: ({ isSynced }) => isSynced,
          created: ({ createdAt }) => age(createdAt),
          'last used': ({ lastUsedAt }) => age(lastUsedAt),
        },
        stdout,
      );
      report(stdout, json, { passkeys }, lines);
    });

  addJsonCommand(developers, 'remove-passkey', 'catalog developers remove-passkey 1 7')
    .description(
      "Stop a passkey from signing in as a developer. Ends the developer's sessions and unused sign-in links.",
    )
    .argument('<id>', 'id of the developer', positiveInteger)
    .argument('<passkey>', 'number of the passkey, as "catalog developers passkeys" lists it', positiveInteger)
    .action(async (id: number, passkey: number, { json }: { json?: boolean }) => {
      const { result: sessionsEnded } = await makeChange(context, (db) => revokePasskey(db, id, passkey), UNCACHED);
      const ended = countOf(sessionsEnded, 'session');
      const line = `Removed passkey ${passkey} and ended ${ended} of developer ${id}.`;
      report(stdout, json, { developerId: id, passkey, sessionsEnded }, line);
    });
}
