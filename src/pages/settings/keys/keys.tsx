import type { SiteParts } from '../../parts/context.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { addCreateKey } from './create-key.js';
import { addExpiry } from './expiry.js';
import { addKeyList } from './key-list.js';
import { addKeyPage } from './key-page.js';
import { addLabel } from './label.js';
import { KEYS_PATH } from './one-key.js';
import { answerRefusals } from './refusals.js';
import { addRevokeKey } from './revoke-key.js';
import { addRollKey } from './roll-key.js';

/** Adds the keys of a developer: their list, the form that creates one, the page of each and forms that change it. */
export function addKeys(router: SettingsRouter, parts: SiteParts, guards: Guards): void {
  router.use(KEYS_PATH, answerRefusals);
  addKeyList(router, parts, guards);
  addCreateKey(router, parts, guards);
  addKeyPage(router, parts, guards);
  addRollKey(router, parts, guards);
  addRevokeKey(router, parts, guards);
  addLabel(router, parts, guards);
  addExpiry(router, parts, guards);
}
