import { readCatalogCounts } from '../../catalog/counts.js';
import { listPlans } from '../../limits/plans.js';
import type { PageRouter, SiteParts } from '../context.js';
import { CachedValue } from '../delivery/cached-value.js';
import type { Representation } from '../../http/response/representation.js';
import { publicPage } from '../layout/page.js';
import { LandingBody, type LandingContent } from './landing-body.js';
import { reportStatus } from './status.js';

/** How long the page shows the same numbers, in milliseconds. */
const LIFETIMES = { valueMs: 5_000, failureMs: 1_000 };

/** Adds the landing page, `/`. It is there also while the database is not: it then says so in place of the numbers. */
export function addLandingPage(router: PageRouter, { db, health, isStopping, site }: SiteParts): void {
  const numbers = new CachedValue(async () => {
    const [counts, plans] = await Promise.all([readCatalogCounts(db), listPlans(db)]);
    return { counts, plans };
  }, LIFETIMES);
  let made: { readonly from: string; readonly page: Representation } | undefined;

  router.get('/', async (ctx) => {
    const content: LandingContent = {
      baseUrl: site.publicUrl(),
      numbers: await numbers.get(),
      status: reportStatus({ isStopping: isStopping(), states: health.states }),
    };
    const from = JSON.stringify(content);
    if (made?.from !== from) made = { from, page: makePage(content) };
    await made.page.send(ctx, 'no-cache');
  });

  function makePage(content: LandingContent): Representation {
    const description = 'A read-only HTTP catalogue of titles, people and curated collections, with a feed of changes.';
    return publicPage(
      site,
      { title: 'Catalog Lookup Service', section: 'home', description },
      <LandingBody {...content} />,
    );
  }
}
