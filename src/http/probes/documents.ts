import type Router from '@koa/router';
import type { RequestState } from '../request/context.js';
import { Representation } from '../response/representation.js';
import { EXAMPLE_ORIGIN, EXAMPLES_LIFETIME_MS, withRecentExamples } from './recent-examples.js';
import { cached } from '../../platform/async/cached.js';

export interface DocumentParts {
  /** The OpenAPI documents as texts, by the paths that serve them. */
  readonly documents: Readonly<Record<string, string>>;
  /** The origin under which people reach the service; undefined where PUBLIC_URL is not set. */
  readonly publicUrl: string | undefined;
  /** An email address as a `mailto:` URI, or a URL, where people reach the operator; undefined for none. */
  readonly operatorContact: string | undefined;
  /** The URI for reports of security problems; undefined for none. */
  readonly securityContact: string | undefined;
}

/** How long a reader of security.txt may keep it, in days: RFC 9116 recommends less than a year. */
const SECURITY_TEXT_DAYS = 30;

/** Adds the documents that describe the service to programs. */
export function addDocuments(router: Router<RequestState>, parts: DocumentParts): void {
  for (const [path, file] of Object.entries(parts.documents)) {
    const text = asDeployed(file, parts);
    const mediaType = path.endsWith('.json') ? 'application/json' : 'application/yaml';
    const document = cached(
      () => new Representation(withRecentExamples(text, Date.now()), mediaType),
      EXAMPLES_LIFETIME_MS,
    );
    router.get(path, async (ctx) => {
      await (await document()).send(ctx, 'no-cache');
      // Editors on the web read the contract. Nothing else is for pages of other origins: they would need a key.
      ctx.set('Access-Control-Allow-Origin', '*');
    });
  }

  const { publicUrl, securityContact } = parts;
  if (securityContact === undefined) return;
  router.get('/.well-known/security.txt', (ctx) => {
    const expires = new Date(Date.now() + SECURITY_TEXT_DAYS * 86_400_000);
    const canonical = publicUrl === undefined ? '' : `Canonical: ${publicUrl}/.well-known/security.txt\n`;
    ctx.set({ 'Cache-Control': 'no-cache', 'Content-Type': 'text/plain; charset=utf-8' });
    ctx.body = `Contact: ${securityContact}\nExpires: ${expires.toISOString()}\n${canonical}`;
  });
}

/**
 * An OpenAPI document with the address of this deployment in its examples and in place of relative addresses, which
 * many tools cannot use, and with the operator's contact after the version. It works alike on YAML and on indented
 * JSON, which is also YAML.
 */
function asDeployed(text: string, { publicUrl, operatorContact }: DocumentParts): string {
  const addressed =
    publicUrl === undefined
      ? text
      : text
          .replaceAll(EXAMPLE_ORIGIN, publicUrl)
          .replace(/(?<=^[ -]+"?url"?: )"?(\/\w*)"?(?=,?$)/gm, (_, path: string) =>
            JSON.stringify(publicUrl + (path === '/' ? '' : path)),
          );
  if (operatorContact === undefined) return addressed;
  const email = /^mailto:([^?]+)/.exec(operatorContact)?.[1];
  const contact = JSON.stringify(email === undefined ? { url: operatorContact } : { email });
  return addressed.replace(/^( +)("?)version\2: .+?(,?)$/m, `$&\n$1"contact": ${contact}$3`);
}
