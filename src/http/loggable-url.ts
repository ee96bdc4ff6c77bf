import { redactApiKeys } from '../keys/api-key.js';

/** The query parameters whose values are written to the log. Of all others only the contract's silence is known. */
const LOGGED_PARAMETERS = ['since'];

const MAX_LENGTH = 200;

/** How often a text may have been encoded: proxies do it once or twice. Each time costs as much as the text is long. */
const MAX_ENCODINGS = 8;

/** Stands for a target that was encoded more often: what it may hide is not known. */
const TOO_DEEP = '(encoded too often)';

/** What follows a feed, save where it was written in some special way. */
const PLAIN_NUMBER = /^[0-9.]+$/;

/** In a path that has none of these nothing is to be decoded, and no key to be found. */
const SUSPECT = /%|svc_/i;

/**
 * A request's target as it may be logged: the path and the parameters that cannot hold a secret. `api_key` is left out
 * in any spelling, and whatever looks like a key elsewhere is cut to its prefix, with all that follows.
 */
export function loggableUrl(path: string, search: URLSearchParams): string {
  if (!SUSPECT.test(path)) {
    if (search.size === 0) return path.slice(0, MAX_LENGTH);
    const since = search.get('since') ?? '';
    if (search.size === 1 && PLAIN_NUMBER.test(since)) return `${path}?since=${since}`.slice(0, MAX_LENGTH);
  }
  const logged = new URLSearchParams([...search].filter(([name]) => LOGGED_PARAMETERS.includes(name))).toString();
  const decoded = decodeLeniently(path + (logged && `?${logged}`));
  return decoded === undefined ? TOO_DEEP : redactApiKeys(decoded).slice(0, MAX_LENGTH);
}

/**
 * Decodes ASCII until nothing is left to decode, so that a key cannot hide behind encoding. Unlike decodeURIComponent it
 * takes any text.
 *
 * @returns undefined for what was encoded too often
 */
function decodeLeniently(text: string): string | undefined {
  let encoded = text;
  for (let i = 0; i <= MAX_ENCODINGS; i += 1) {
    const decoded = encoded.replace(/%([2-7][0-9a-f])/gi, (_match, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    );
    if (decoded === encoded) return decoded;
    encoded = decoded;
  }
  return undefined;
}
