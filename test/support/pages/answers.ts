import type { IncomingHttpHeaders } from 'node:http';
import { faultsOf } from './faults.js';

/** What is looked at of an answer. */
interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What every page of the service begins with. */
const DOCTYPE = '<!doctype html>\n<html lang="en">';

/** A whole key, but for that of the guides. */
const KEY = /svc_(?!EXAMPLE)[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

/** The attributes of every cookie, in any order. */
const COOKIE = { always: ['path=/', 'httponly'], sameSite: /^samesite=(?:lax|strict)$/ };

/** The pages that were looked at, since many are the same. */
const looked = new Set<string>();

/** @returns what is wrong with an answer whatever was asked: with its cookies, its header fields and its page */
export function faultsOfAnswer({ status, headers, text }: Answer, method: string): string[] {
  const faults = (headers['set-cookie'] ?? [])
    .filter((line) => !isForeign(line) && !isGuarded(line))
    .map((line) => `not guarded: ${line}`);
  if (!text.startsWith(DOCTYPE)) return faults;
  if ([429, 503].includes(status) && !/^[1-9]\d*$/.test(headers['retry-after'] ?? ''))
    faults.push(`${status} without Retry-After`);
  if (KEY.test(JSON.stringify(headers))) faults.push('a key in a header field');
  // A new key is shown once, in the answer to its form.
  if (method !== 'POST' && KEY.test(text)) faults.push('a key in a page that can be opened again');
  if (!looked.has(text)) faults.push(...faultsOf(text));
  if (faults.length === 0) looked.add(text);
  return faults;
}

/** Whether a cookie is that of the identity provider. */
const isForeign = (line: string): boolean => /^_[a-z]/.test(line);

/** Whether neither scripts nor other sites can read or send a cookie. Only on loopback it may travel without TLS. */
function isGuarded(line: string): boolean {
  const [name = '', ...attributes] = line.toLowerCase().split(/; */);
  return (
    COOKIE.always.every((attribute) => attributes.includes(attribute)) &&
    attributes.some((attribute) => COOKIE.sameSite.test(attribute)) &&
    attributes.includes('secure') === name.startsWith('__host-')
  );
}
