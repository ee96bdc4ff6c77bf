import { createPrivateKey, type KeyObject } from 'node:crypto';

// Each parser takes the text of an environment variable and returns its value. It throws InvalidSetting when it cannot.

/** A setting has an invalid text. The message follows its name, and never repeats a secret. */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
  /** Whether the operator named it. If the default address is not available, a server runs without metrics. */
  readonly isRequired: boolean;
}

export const METRICS_ADDRESS: MetricsAddress = { host: '127.0.0.1', port: 9464, isRequired: false };

/** @returns the end of an error; without the text if it may be a URL with a password, set under the wrong name */
function notThis(text: string): string {
  return text.includes('@') ? '' : `, not ${JSON.stringify(text)}`;
}

export function parseHost(text: string): string {
  if (/^[A-Za-z0-9.:_-]+$/.test(text)) return text;
  throw new InvalidSetting(`must be an address or a host name such as 127.0.0.1${notThis(text)}`);
}

/** @returns a parser of whole numbers from `least` to `most` */
export function parseWholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidSetting(`must be a whole number from ${least} to ${most}${notThis(text)}`);
  };
}

/** The advice for a URL that cannot be read. */
export const ENCODE = 'in a user name or password, write / ? # % @ as %2F %3F %23 %25 %40';

/** @returns the text itself: the driver has its own parser of URLs */
export function parsePostgresUrl(text: string): string {
  if (readPostgresUrl(text) !== undefined) return text;
  throw new InvalidSetting(`must be a URL such as postgres://user:password@host:5432/database; ${ENCODE}`);
}

/** @returns the parts of a URL of PostgreSQL, as the driver reads them; undefined for any other text */
export function readPostgresUrl(text: string): URL | undefined {
  // An @ behind the host is a sign of a password with / ? or #: a piece of it would become the host, which errors name.
  if (!/^postgres(?:ql)?:\/\/[^/?#]*(?:[/?][^@#]*)?$/i.test(text)) return undefined;
  // After a user, libpq's form for a socket has no host: postgres://user@/database?host=/folder
  const complete = [text, text.replace('@/', '@localhost/')].find((it) => URL.canParse(it));
  const url = complete === undefined ? undefined : new URL(complete);
  return url && isDecodable(url.username + url.password + url.hostname + url.pathname) ? url : undefined;
}

/** @returns an API key, of whatever service */
export function parseClientKey(text: string): string {
  if (/^[\x21-\x7e]{1,1000}$/.test(text)) return text;
  throw new InvalidSetting('must be an API key');
}

/** @returns the URL of a Redis; of a cluster, for {@link readClusterUrl} */
export function parseRedisUrl(text: string): string {
  const nodes = readClusterUrl(text);
  if (nodes === undefined) return parseServerUrl(text);
  for (const node of nodes) parseServerUrl(node);
  return text;
}

/** @returns a URL for each node in `redis+cluster://user:password@host1,host2`; undefined for a URL of another form */
export function readClusterUrl(text: string): readonly string[] | undefined {
  const [, scheme, login = '', hosts] = /^(rediss?)\+cluster:\/\/([^@/]*@)?([^@/]*)\/?0?$/i.exec(text) ?? [];
  return hosts?.split(',').map((host) => `${scheme}://${login}${host}`);
}

/** @returns the URL, for ioredis to parse, with an encoded password */
function parseServerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !/^rediss?:$/.test(url.protocol) ||
    !/^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(url.hostname) ||
    !/^\/?\d{0,5}$/.test(url.pathname) ||
    /[?#]/.test(text) ||
    !isDecodable(url.username + url.password)
  ) {
    throw new InvalidSetting(
      'must be a URL such as redis://:password@host:6379/0, or redis+cluster://:password@host1:6379,host2:6379 for a ' +
        `Redis Cluster, with rediss for TLS, and without parameters; ${ENCODE}`,
    );
  }
  return url.href;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const SENTINEL_PORT = 26_379;

/** @returns the addresses in a list such as `host1:26379,host2`, each with the usual port if it has none */
export function parseSentinels(text: string): readonly { readonly host: string; readonly port: number }[] {
  return text.split(',').map((item) => {
    const [, ipv6, name, digits] =
      /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(item.trim()) ?? [];
    const host = ipv6 ?? name;
    const port = Number(digits ?? SENTINEL_PORT);
    if (host === undefined || port < 1 || port > 65_535) {
      throw new InvalidSetting(`must be a list such as host1:26379,host2:26379${notThis(text)}`);
    }
    return { host, port };
  });
}

/** @returns the number of proxies; 0 for `off` */
export function parseProxies(text: string): number {
  if (text === 'off') return 0;
  if (/^[1-9]$/.test(text)) return Number(text);
  throw new InvalidSetting(`must be off, or the number of your proxies, 1 to 9${notThis(text)}`);
}

/** @returns the address in `host:port`, `[address]:port` for IPv6, or `:port` for this machine; undefined for `off` */
export function parseMetricsAddress(text: string): MetricsAddress | undefined {
  if (text === 'off') return undefined;
  const [, ipv6, host, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))?:(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits ?? NaN);
  if (port <= 65_535) return { host: ipv6 ?? host ?? METRICS_ADDRESS.host, port, isRequired: true };
  throw new InvalidSetting(`must be off, or host:port such as 127.0.0.1:9464 or [::1]:9464${notThis(text)}`);
}

/** @returns a parser of one of some words */
export function parseWord<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word !== undefined) return word;
    throw new InvalidSetting(`must be one of ${words.join(', ')}${notThis(text)}`);
  };
}

/** @returns the origin of a public URL, without a slash at its end */
export function parsePublicUrl(text: string): string {
  const url = parseWebUrl(text);
  if (url?.pathname === '/' && !/[?#]/.test(text)) return url.origin;
  throw new InvalidSetting('must be https://host or https://host:port without a path; http:// only for this machine');
}

/** @returns the text itself: providers compare it character by character */
export function parseIssuer(text: string): string {
  // OpenID Connect Discovery, section 2: neither a query nor a fragment.
  if (parseWebUrl(text) !== undefined && !/[?#]/.test(text)) return text;
  throw new InvalidSetting('must be the https:// URL of your provider, such as https://accounts.example.com');
}

/** @returns a `mailto:` or https URL, for a link. A bare email address is accepted too. */
export function parseContact(text: string): string {
  const url = /^[^\s@:/?]+@[^\s@:/?]+$/.test(text) ? `mailto:${text}` : text;
  if (/^(?:mailto:[^\s@]+@|https:\/\/)[^\s@]+$/.test(url) && URL.canParse(url)) return url;
  throw new InvalidSetting('must be an email address or a URL, such as ops@example.com or https://example.com/support');
}

/** @returns a line of text that the pages quote, also in Markdown */
export function parseCredit(text: string): string {
  if (/^[^`\p{C}]{1,200}$/u.test(text)) return text;
  throw new InvalidSetting('must be one line of at most 200 characters, without backticks');
}

/** @returns the URL of a webhook, which may have a path and a query */
export function parseNotifyUrl(text: string): string {
  const url = parseWebUrl(text);
  if (url !== undefined && !text.includes('#')) return url.href;
  throw new InvalidSetting('must be an https:// URL without a user or a fragment; http:// only for this machine');
}

/** @returns the bytes of a secret of Standard Webhooks */
export function parseNotifySecret(text: string): Buffer {
  const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const secret = Buffer.from(encoded, 'base64');
  if (secret.length >= 24 && secret.length <= 64 && secret.toString('base64') === encoded) return secret;
  throw new InvalidSetting('must be whsec_ and 24 to 64 random bytes in base64');
}

/** @returns an Ed25519 private key, from PKCS #8 as PEM or as the base64 within it */
export function parseSigningKey(text: string): KeyObject {
  try {
    const key = text.includes('-----BEGIN')
      ? createPrivateKey(text)
      : createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' });
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // The error below has the expected form.
  }
  throw new InvalidSetting(
    'must be an Ed25519 private key in PEM or base64, as openssl genpkey -algorithm ed25519 makes it',
  );
}

/** @returns undefined unless it is an https URL, or an http URL of this machine, without a user or a password */
function parseWebUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username !== '' || url.password !== '') return undefined;
  return url.protocol === 'https:' || isLoopback(url) ? url : undefined;
}

/** Whether a URL leads to this machine by http, where nobody can intercept it. */
function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

export function parseSwitch(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new InvalidSetting(`must be on or off${notThis(text)}`);
}
