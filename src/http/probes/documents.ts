import type Router from '@koa/router';
import { COPIES_PATH } from '../copies/copies.js';
import { LEAKED_KEY_PATH } from '../leaked-keys/leaked-keys.js';
import type { RequestState } from '../request/context.js';
import { Representation } from '../response/representation.js';
import { madeDaily, withRecentExamples } from './recent-examples.js';

/** The OpenAPI documents as texts. */
export interface ContractTexts {
  /** `openapi.yaml`. */
  readonly yaml: string;
  /** The JSON that was generated from it. */
  readonly json: string;
  /** The description of `/revoke-leaked-key`, which is served as `/openapi-leaked-keys.json`. */
  readonly leakedKeys: string;
  /** The description of `/copies/`, served as `/openapi-copies.json`; undefined for a server without copies. */
  readonly copies: string | undefined;
}

export interface DocumentParts {
  readonly contract: ContractTexts;
  /** The origin under which people reach the service; undefined where PUBLIC_URL is not set. */
  readonly publicUrl: string | undefined;
  /** The URI for reports of security problems; undefined for none. */
  readonly securityContact: string | undefined;
  /** Whether there are pages for people. */
  readonly hasPages: boolean;
}

/** How long a reader of security.txt may keep it, in days. The RFC recommends less than a year. */
const SECURITY_TEXT_DAYS = 30;

const DAY_MS = 86_400_000;

const CATALOG_PATH = '/.well-known/api-catalog';

/** Adds the documents that describe the service to programs. */
export function addDocuments(router: Router<RequestState>, parts: DocumentParts): void {
  for (const [path, document] of openApiDocuments(parts.contract)) {
    router.get(path, (ctx) => {
      // Editors on the web read the contract. Nothing else is for pages of other origins: they would need a key.
      ctx.set('Access-Control-Allow-Origin', '*');
      return document().send(ctx, 'no-cache');
    });
  }

  router.get(CATALOG_PATH, (ctx) => {
    ctx.set({
      'Cache-Control': 'no-cache',
      'Content-Type': 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
      Link: `<${CATALOG_PATH}>; rel="api-catalog"`,
    });
    ctx.body = JSON.stringify(apiCatalog(parts));
  });

  if (parts.securityContact === undefined) return;
  router.get('/.well-known/security.txt', (ctx) => {
    ctx.set({ 'Cache-Control': 'no-cache', 'Content-Type': 'text/plain; charset=utf-8' });
    ctx.body = securityText(parts, Date.now());
  });
}

/** Each is compressed once a day for each coding. JSON.stringify leaves out the indentation of the files. */
function openApiDocuments({
  yaml,
  json,
  leakedKeys,
  copies,
}: ContractTexts): (readonly [string, () => Representation])[] {
  const compact = (text: string): string => JSON.stringify(JSON.parse(text));
  const documents = [
    ['/openapi.yaml', yaml, 'application/yaml'],
    ['/openapi.json', compact(json), 'application/json'],
    ['/openapi-leaked-keys.json', compact(leakedKeys), 'application/json'],
    ...(copies === undefined ? [] : [['/openapi-copies.json', compact(copies), 'application/json'] as const]),
  ] as const;
  return documents.map(([path, text, mediaType]) => [
    path,
    madeDaily((now) => new Representation(withRecentExamples(text, now), mediaType)),
  ]);
}

/**
 * The APIs of the service and what describes them: RFC 9727, as a linkset (RFC 9264). The links are relative where
 * PUBLIC_URL is not set: behind a proxy, the address that the server listens on is of no use to clients.
 */
function apiCatalog({ publicUrl: origin = '', hasPages, contract }: DocumentParts): object {
  const link = (path: string, type: string): object => ({ href: origin + path, type });
  const page = (path: string): object => (hasPages ? { 'service-doc': [link(path, 'text/html')] } : {});
  const apis = [
    {
      anchor: `${origin}/api/v1`,
      'service-desc': [link('/openapi.json', 'application/json'), link('/openapi.yaml', 'application/yaml')],
      ...page('/docs'),
      status: [link('/readyz', 'application/json')],
    },
    {
      anchor: origin + LEAKED_KEY_PATH,
      'service-desc': [link('/openapi-leaked-keys.json', 'application/json')],
      ...page('/docs/guides/leaked-keys'),
    },
    ...(contract.copies === undefined
      ? []
      : [
          {
            anchor: origin + COPIES_PATH,
            'service-desc': [link('/openapi-copies.json', 'application/json')],
            ...page('/docs/guides/mirroring'),
          },
        ]),
  ];
  const items = apis.map(({ anchor }) => ({ href: anchor }));
  return { linkset: [{ anchor: origin + CATALOG_PATH, item: items }, ...apis] };
}

/** Where to report security problems: RFC 9116. It expires by the day, so that it is the same for a day. */
function securityText({ publicUrl, securityContact }: DocumentParts, nowMs: number): string {
  const expires = new Date((Math.floor(nowMs / DAY_MS) + SECURITY_TEXT_DAYS) * DAY_MS);
  return [
    `Contact: ${securityContact}`,
    `Expires: ${expires.toISOString()}`,
    ...(publicUrl === undefined ? [] : [`Canonical: ${publicUrl}/.well-known/security.txt`]),
    '',
  ].join('\n');
}
