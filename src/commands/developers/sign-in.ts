import { InvalidArgumentError, type Command } from 'commander';
import type { Knex } from 'knex';
import {
  linkIdentity,
  listIdentities,
  unlinkIdentity,
  type Identity,
  type LinkedIdentity,
} from '../../accounts/identities.js';
import { listPasskeys, revokePasskey, type Passkey } from '../../accounts/passkeys.js';
import { endAllSessions } from '../../accounts/sessions.js';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import { InvalidSetting, parseIssuer } from '../../config/parsers.js';
import type { Config } from '../../config/settings.js';
import { findDeveloper } from '../../developers/developers.js';
import { OperatorError } from '../../errors.js';
import { urlOf, withLocalName } from '../../http/connection/server.js';
import { countOf } from '../../platform/text/count.js';
import { DEVELOPER, positiveInteger, text } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { readAddresses } from '../server/server-addresses.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { age, shortTime, type Columns } from '../output/table.js';

/** An example of the options that name an identity. */
const IDENTITY = '--issuer https://id.example.com --subject 10769150';

const IDENTITY_COLUMNS: Columns<LinkedIdentity> = {
  issuer: ({ issuer }) => issuer,
  subject: ({ subject }) => subject,
  linked: ({ linkedAt }) => shortTime(linkedAt),
};

const PASSKEY_COLUMNS: Columns<Passkey> = {
  passkey: ({ id }) => id,
  name: ({ name }) => name,
  synced: ({ isSynced }) => isSynced,
  created: ({ createdAt }) => age(createdAt),
  'last used': ({ lastUsedAt }) => age(lastUsedAt),
};

/** `catalog developers sign-in-link|link|unlink|identities|sign-out|passkeys|remove-passkey` */
export const registerSignIn: RegisterCommand = (developers, context) => {
  addSignInLink(developers, context);
  addIdentities(developers, context);
  addSignOut(developers, context);
  addPasskeys(developers, context);
};

function addSignInLink(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'sign-in-link', 'PUBLIC_URL=https://catalog.example catalog developers sign-in-link 1')
    .description(`Print a link that signs a developer in. It works once, within ${LINK_LIFETIME_MINUTES} minutes.`)
    .argument('[id]', 'id of the developer; required without --demo', positiveInteger)
    .option('--demo', 'for the demo developer, in place of an id')
    .reports(context, async (given: number | undefined, { demo = false }: { demo?: boolean }, command: Command) => {
      if (demo === (given !== undefined)) command.error('error: give either the id of a developer or --demo');
      const config = context.config();
      const running = await readAddresses(config, context.packageRoot);
      const publicUrl = publicUrlOf(config, running?.url);
      const { id, token } = await makeChange(context, async (db) => {
        const developer = given ?? (await (await import('../server/demo.js')).requireDemoDeveloper(db)).id;
        return { id: developer, token: await createSignInLink(db, developer) };
      });
      if (config.publicUrl === undefined && config.databaseUrl !== undefined) {
        context.stderr.write('catalog: PUBLIC_URL is not set here: the link works only on this machine.\n');
      }
      const url = signInLinkUrl(publicUrl, token);
      const what = `Sign-in link for developer ${id}. It works once, within ${LINK_LIFETIME_MINUTES} minutes. Keep it secret:`;
      return [{ developerId: id, url, expiresInSeconds: LINK_LIFETIME_MINUTES * 60 }, `${what}\n  ${url}`];
    });
}

function addIdentities(developers: Command, context: CommandContext): void {
  const addIdentityCommand = (name: string) =>
    addJsonCommand(developers, name, `catalog developers ${name} 1 ${IDENTITY}`)
      .argument(...DEVELOPER)
      .requiredOption('--issuer <url>', 'URL of the provider, exactly as in OIDC_ISSUER', issuerUrl)
      .requiredOption('--subject <subject>', 'subject at the provider, as shown on the sign-in page', text(255));

  addIdentityCommand('link')
    .description('Let an identity of your OpenID Connect provider sign in as a developer.')
    .reports(context, async (id: number, { issuer, subject }: Identity) => {
      await makeChange(context, (db) => linkIdentity(db, id, { issuer, subject }));
      const line = `Linked developer ${id}: this identity can now sign in as that developer.`;
      return [{ developerId: id, issuer, subject }, line];
    });

  addIdentityCommand('unlink')
    .description(
      "Stop an identity from signing in as a developer. Ends the developer's sessions and unused sign-in links. " +
        'Passkeys can still sign in.',
    )
    .reports(context, async (id: number, { issuer, subject }: Identity) => {
      const sessionsEnded = await makeChange(context, (db) => unlinkIdentity(db, id, { issuer, subject }));
      const line = `Unlinked the identity and ended ${countOf(sessionsEnded, 'session')} of developer ${id}.`;
      return [{ developerId: id, issuer, subject, sessionsEnded }, `${line} ${passkeysRemain(id)}`];
    });

  addJsonCommand(developers, 'identities', 'catalog developers identities 1')
    .description('List the identities that can sign in as a developer.')
    .argument(...DEVELOPER)
    .action((id: number, { json }: JsonFlag) =>
      reportRows(context, json, (db) => [listIdentities(db, id)], { name: 'identities', columns: IDENTITY_COLUMNS }),
    );
}

function addSignOut(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'sign-out', 'catalog developers sign-out 1')
    .description("End a developer's sessions and unused sign-in links. Keys and passkeys keep working.")
    .argument(...DEVELOPER)
    .reports(context, async (id: number) => {
      const sessionsEnded = await makeChange(context, (db) => endAllSessions(db, id, 'operator'));
      const line = `Ended ${countOf(sessionsEnded, 'session')} of developer ${id}. ${passkeysRemain(id)}`;
      return [{ developerId: id, sessionsEnded }, line];
    });
}

function addPasskeys(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'passkeys', 'catalog developers passkeys 1')
    .description('List the passkeys that can sign in as a developer.')
    .argument(...DEVELOPER)
    .action((id: number, { json }: JsonFlag) => {
      const read = (db: Knex) => [findDeveloper(db, id).then(() => listPasskeys(db, id))];
      return reportRows(context, json, read, { name: 'passkeys', columns: PASSKEY_COLUMNS });
    });

  addJsonCommand(developers, 'remove-passkey', 'catalog developers remove-passkey 1 7')
    .description(
      "Stop a passkey from signing in as a developer. Ends the developer's sessions and unused sign-in links.",
    )
    .argument(...DEVELOPER)
    .argument('<passkey>', 'number of the passkey, as "catalog developers passkeys" lists it', positiveInteger)
    .reports(context, async (id: number, passkey: number) => {
      const sessionsEnded = await makeChange(context, (db) => revokePasskey(db, id, passkey));
      const line = `Removed passkey ${passkey} and ended ${countOf(sessionsEnded, 'session')} of developer ${id}.`;
      return [{ developerId: id, passkey, sessionsEnded }, line];
    });
}

function passkeysRemain(id: number): string {
  return `Passkeys can still sign in: see "catalog developers passkeys ${id}".`;
}

/** Reads the URL of a provider. @throws InvalidArgumentError */
function issuerUrl(value: string): string {
  try {
    return parseIssuer(text(500)(value));
  } catch (error) {
    if (!(error instanceof InvalidSetting)) throw error;
    throw new InvalidArgumentError(`It ${error.message}.`);
  }
}

/**
 * @param running - the origin that a running server has, if it is known
 * @throws OperatorError if there are no pages to sign in to, or the server chooses its port itself
 */
function publicUrlOf({ site, publicUrl, host, port }: Config, running: string | undefined): string {
  if (!site) {
    throw new OperatorError('There are no developer settings to sign in to: SITE is off.', {
      advice: 'Create keys with "catalog keys create", or set SITE=on.',
    });
  }
  if (publicUrl !== undefined) return publicUrl;
  if (running !== undefined) return withLocalName(running);
  if (port === 0) throw new OperatorError('Set PUBLIC_URL: with PORT 0 the server chooses its own port.');
  return withLocalName(urlOf(host, port));
}
