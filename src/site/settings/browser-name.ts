/** By which word of a browser's name it is known. Many name others as well, so the order counts. */
const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Headless)?(?:Chrome|CriOS)\//],
  ['Safari', /\bVersion\/.*\bSafari\//],
] as const;

const SYSTEMS = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows NT\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['macOS', /\bMac OS X\b/],
  ['Linux', /\bLinux\b/],
] as const;

/** What is shown of a name that is none of these, in characters. */
const MAX_LENGTH = 60;

/** @returns a browser and its system, for people to recognise: `Firefox on Linux`; otherwise what it calls itself */
export function browserName(userAgent: string): string {
  const find = (names: readonly (readonly [string, RegExp])[]): string | undefined =>
    names.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const characters = Array.from(userAgent);
  if (characters.length === 0) return 'Unknown browser';
  return characters.length <= MAX_LENGTH ? userAgent : `${characters.slice(0, MAX_LENGTH).join('')}…`;
}
