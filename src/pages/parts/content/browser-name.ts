/** How a User-Agent names each browser. Many also name others, so the order counts. */
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

/** How much of any other User-Agent is shown, in characters. */
const MAX_LENGTH = 60;

/** @returns a browser and its system for people to recognise, `Firefox on Linux`; otherwise its User-Agent */
export function browserName(userAgent: string): string {
  const find = (names: readonly (readonly [string, RegExp])[]): string | undefined =>
    names.find(([, pattern]) => pattern.test(userAgent))?.[0];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const characters = Array.from(userAgent);
  if (characters.length === 0) return 'Unknown browser';
  return characters.length <= MAX_LENGTH ? userAgent : `${characters.slice(0, MAX_LENGTH).join('')}…`;
}
