import type { Command } from 'commander';
import { linkIdentity, listIdentities, unlinkIdentity, type Identity } from '../../accounts/identities.js';
import { endAllSessions } from '../../accounts/sessions.js';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import type { Config } from '../../config/settings.js';
import { OperatorError } from '../../errors.js';
import { urlOf } from '../../http/connection/server.js';
import { addJsonCommand } from '../add-json-command.js';
import { positiveInteger, text } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printLine, printTable, shortTime, toSnakeCase } from '../output.js';

/** An example of the options that name an identity. */
const IDENTITY = '--issuer https://accounts.example.com --subject 10769150350006150715';

/** `catalog developers sign-in-link|link|identities|unlink|sign-out` */
export const registerSignIn: RegisterCommand = (developers, { stdout, config, withDatabase }) => {
  addJsonCommand(developers, 'sign-in-link', 'PUBLIC_URL=https://catalog.example catalog developers sign-in-link 1')
    .description(`print a link that signs a developer in, once, within ${LINK_LIFETIME_MINUTES} minutes`)
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const publicUrl = publicUrlOf(config());
      const token = await withDatabase((db) => createSignInLink(db, id));
      const url = signInLinkUrl(publicUrl, token);
      if (json) printJson(stdout, { developer_id: id, url, expires_in_seconds: LINK_LIFETIME_MINUTES * 60 });
      else {
        printLine(stdout, `Signs developer ${id} in, once, within ${LINK_LIFETIME_MINUTES} minutes. Keep it secret:`);
        printLine(stdout, `  ${url}`);
      }
    });

  const addIdentityCommand = (name: string): Command =>
    addJsonCommand(developers, name, `catalog developers ${name} 1 ${IDENTITY}`)
      .argument('<id>', 'id of the developer', positiveInteger)
      .requiredOption('--issuer <url>', 'the provider, as OIDC_ISSUER names it', text(500))
      .requiredOption('--subject <subject>', 'subject at the provider, as shown on the sign-in page', text(255));

  addIdentityCommand('link')
    .description('let an identity of your OpenID Connect provider sign in as a developer')
    .action(async (id: number, { issuer, subject, json }: Identity & { json?: boolean }) => {
      await withDatabase((db) => linkIdentity(db, id, { issuer, subject }));
      if (json) printJson(stdout, { developer_id: id, issuer, subject });
      else printLine(stdout, `Linked developer ${id}: this identity signs in as that developer from now on.`);
    });

  addIdentityCommand('unlink')
    .description(
      'stop an identity from signing in as a developer; ends all sessions of the developer and voids the links',
    )
    .action(async (id: number, { issuer, subject, json }: Identity & { json?: boolean }) => {
      const ended = await withDatabase((db) => unlinkIdentity(db, id, { issuer, subject }));
      if (json) printJson(stdout, { developer_id: id, issuer, subject, sessions_ended: ended });
      else printLine(stdout, `Unlinked the identity and ended ${sessions(ended)} of developer ${id}.`);
    });

  addJsonCommand(developers, 'identities', 'catalog developers identities 1')
    .description('list the identities that sign in as a developer')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const identities = await withDatabase((db) => listIdentities(db, id));
      if (json) printJson(stdout, { identities: identities.map(toSnakeCase) });
      else {
        printTable(stdout, identities, {
          issuer: ({ issuer }) => issuer,
          subject: ({ subject }) => subject,
          linked: ({ linkedAt }) => shortTime(linkedAt),
        });
      }
    });

  addJsonCommand(developers, 'sign-out', 'catalog developers sign-out 1')
    .description('end all sessions of a developer and void the sign-in links; keys go on working')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const ended = await withDatabase((db) => endAllSessions(db, id, 'operator'));
      if (json) printJson(stdout, { developer_id: id, sessions_ended: ended });
      else printLine(stdout, `Ended ${sessions(ended)} of developer ${id}.`);
    });
};

function sessions(count: number): string {
  return count === 1 ? '1 session' : `${count} sessions`;
}

/** @throws OperatorError where nobody but the server knows its port */
function publicUrlOf({ publicUrl, host, port }: Config): string {
  if (publicUrl !== undefined) return publicUrl;
  if (port === 0) throw new OperatorError('Set PUBLIC_URL: with PORT 0 only the server knows where it listens.');
  return urlOf(host, port);
}
