import type { Fault } from '../fault.js';
import { ACCOUNTS_FAULTS } from './site/accounts.js';
import { BROWSER_FAULTS } from './site/browser.js';
import { COUNTS_FAULTS } from './catalog/counts.js';
import { EMBEDDED_FAULTS } from './embedded.js';
import { EXPORT_FAULTS } from './catalog/export.js';
import { FEED_FAULTS } from './catalog/feed.js';
import { FOLLOW_FAULTS } from './follow.js';
import { HTTP_FAULTS } from './http.js';
import { IMPORT_FAULTS } from './catalog/import.js';
import { KEY_LIVES_FAULTS } from './key-lives.js';
import { KEYS_FAULTS } from './keys.js';
import { LIMITS_FAULTS } from './limits.js';
import { LOG_FAULTS } from './server/log.js';
import { POSTGRES_FAULTS } from './postgres.js';
import { ROLES_FAULTS } from './roles.js';
import { SERVICE_FAULTS } from './server/service.js';
import { PAGES_FAULTS } from './site/pages.js';
import { USAGE_FAULTS } from './usage.js';
import { WORKERS_FAULTS } from './server/workers.js';

/** Every fault, by the part of the service that it is planted in. */
export const FAULTS: readonly Fault[] = [
  ...ACCOUNTS_FAULTS,
  ...BROWSER_FAULTS,
  ...COUNTS_FAULTS,
  ...EMBEDDED_FAULTS,
  ...EXPORT_FAULTS,
  ...FEED_FAULTS,
  ...FOLLOW_FAULTS,
  ...HTTP_FAULTS,
  ...IMPORT_FAULTS,
  ...KEY_LIVES_FAULTS,
  ...KEYS_FAULTS,
  ...LIMITS_FAULTS,
  ...LOG_FAULTS,
  ...PAGES_FAULTS,
  ...POSTGRES_FAULTS,
  ...ROLES_FAULTS,
  ...SERVICE_FAULTS,
  ...USAGE_FAULTS,
  ...WORKERS_FAULTS,
];
