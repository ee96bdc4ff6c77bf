import { LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import type { Config } from '../../config/settings.js';
import type { Demo } from './prepare-demo.js';

/** How far back the example of /changes reaches, in seconds. */
const SINCE_AGO = 3_600;

/** Returns the first steps for a person who has just started the service. @param url - where the server listens */
export function welcome(
  url: string,
  { publicUrl = url, site }: Pick<Config, 'publicUrl' | 'site'>,
  { key, signInToken }: Demo,
): string {
  const pages = [
    `\nPages in the browser: ${publicUrl}`,
    ...(signInToken === undefined
      ? []
      : [
          `Sign in to the settings as the demo developer (once, within ${LINK_LIFETIME_MINUTES} minutes):`,
          `  ${signInLinkUrl(publicUrl, signInToken)}`,
        ]),
  ];
  return [
    `\nCatalog Lookup Service on ${url}`,
    ...(key === undefined
      ? ['The demo key was shown on the first start. To create another: make key, with the same settings']
      : firstCalls(url, key)),
    ...(site ? pages : []),
    '',
  ].join('\n');
}

function firstCalls(url: string, key: string): string[] {
  const since = String(Math.floor(Date.now() / 1000) - SINCE_AGO);
  const call = (path: string): string => `  curl -H 'Authorization: Bearer ${key}' '${url}/api/v1${path}'`;
  return [
    `\nYour demo key, shown only now (to create another: make key, with the same settings):\n  ${key}`,
    '\nTry it:',
    call('/stats'),
    call(`/changes?since=${since}`),
    call('/titles/blade-runner-1982'),
  ];
}
