import type { PageRouter } from '../../parts/context.js';
import { AreaNavigation } from '../../parts/frame/signed-in-page.js';
import { addGuidePages, readGuideFiles, type Guide } from '../../parts/guides/guide-pages.js';
import type { OperatorParts } from '../context.js';
import { operatorFrame, TABS } from '../layout.js';

/** The subject of each guide, in reading order. */
export const GUIDES = {
  install: 'Go from a checkout to a server on your own PostgreSQL, with a proxy and file limits.',
  configure: 'Every setting, with PostgreSQL, its roles and poolers, and Redis.',
  'managed-databases': 'Which PostgreSQL and Redis of a provider the service can use, and how to check one.',
  'keys-and-developers': 'Register developers; create, roll and revoke keys; change plans.',
  'sign-in': 'One-time links, OpenID Connect, and sessions.',
  catalogue: 'Import files, export copies for mirrors, and check the counts.',
  'publish-copies': 'Signed copies of the catalogue, on a timer, from which mirrors start and check themselves.',
  'writing-in-sql': 'Tables, rules and roles for programs that write to the database.',
  'scale-out': 'More cores, more machines, a balancer and a read replica.',
  'operator-pages': 'See the state of the service and its developers in your browser, on the internal address.',
  monitor: 'Probes, metrics with their alerts, and the log.',
  notices: 'A signed webhook for expiring and leaked keys, used-up quotas, and components that are down.',
  runbook: 'Symptoms, what to check, and what to do.',
  failover: 'Promote a standby without losing revocations.',
  'backup-and-restore': 'Back up PostgreSQL, restore it, and restart the feed.',
  upgrade: 'Replace servers without downtime, shut them down cleanly, and check a deployment.',
  performance: 'What a request costs, how the service grows, and how that was measured.',
};

/** Reads the guides for operators. @param packageRoot - the folder of this package's package.json */
export function readGuides(packageRoot: string): Promise<readonly Guide[]> {
  return readGuideFiles(`${packageRoot}/src/pages/operator/guides`, GUIDES);
}

/**
 * Adds the guides for operators. They need no session: nothing in them is secret, and an outage of the database, which
 * a sign-in needs, is when the runbook is needed.
 */
export function addGuides(router: PageRouter, parts: OperatorParts): void {
  addGuidePages(router, {
    guides: parts.guides,
    frame: operatorFrame(parts),
    path: '/guides',
    lead: 'How to install, configure, monitor and repair the service.',
    navigation: (
      <div class="container">
        <AreaNavigation name="Operator" tabs={TABS} tab="guides" />
      </div>
    ),
  });
}
