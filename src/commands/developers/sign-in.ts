import { linkIdentity } from '../../accounts/identities.js';
import { endAllSessions } from '../../accounts/sessions.js';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import type { Config } from '../../config/settings.js';
import { OperatorError } from '../../errors.js';
import { urlOf } from '../../http/connection/server.js';
import { addJsonCommand } from '../add-json-command.js';
import { positiveInteger, text } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printLine } from '../output.js';

/** `catalog developers sign-in-link|link|sign-out` */
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

  addJsonCommand(
    developers,
    'link',
    'catalog developers link 1 --issuer https://accounts.example.com --subject 10769150350006150715',
  )
    .description('let an identity of your OpenID Connect provider sign in as a developer')
    .argument('<id>', 'id of the developer', positiveInteger)
    .requiredOption('--issuer <url>', 'the provider, as OIDC_ISSUER names it', text(500))
    .requiredOption(
      '--subject <subject>',
      'who it is there; the page shows it when somebody tries to sign in',
      text(255),
    )
    .action(async (id: number, { issuer, subject, json }: { issuer: string; subject: string; json?: boolean }) => {
      await withDatabase((db) => linkIdentity(db, id, { issuer, subject }));
      if (json) printJson(stdout, { developer_id: id, issuer, subject });
      else printLine(stdout, `Linked developer ${id}: this identity signs in as that developer from now on.`);
    });

  addJsonCommand(developers, 'sign-out', 'catalog developers sign-out 1')
    .description('end all sessions of a developer and void the sign-in links; keys go on working')
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const ended = await withDatabase((db) => endAllSessions(db, id, 'operator'));
      if (json) printJson(stdout, { developer_id: id, sessions_ended: ended });
      else printLine(stdout, `Ended ${ended === 1 ? '1 session' : `${ended} sessions`} of developer ${id}.`);
    });
};

/** @throws OperatorError where nobody but the server knows its port */
function publicUrlOf({ publicUrl, host, port }: Config): string {
  if (publicUrl !== undefined) return publicUrl;
  if (port === 0) throw new OperatorError('Set PUBLIC_URL: with PORT 0 only the server knows where it listens.');
  return urlOf(host, port);
}
