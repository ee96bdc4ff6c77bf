import type Router from '@koa/router';
import type Koa from 'koa';
import type { Knex } from 'knex';
import type { RequestState } from '../http/request/context.js';
import type { Health } from '../platform/telemetry/health.js';
import type { StaticFiles } from './delivery/static-files.js';

/** What the pages are made from. */
export interface SiteParts {
  /** The primary. */
  readonly db: Knex;
  readonly health: Health;
  readonly isStopping: () => boolean;
  readonly site: SiteOptions;
}

/** What only the pages need. */
export interface SiteOptions {
  readonly files: StaticFiles;
  /** The origin under which people reach the service, such as `https://catalog.example.com`. Known once the server listens. */
  readonly publicUrl: () => string;
}

/** What each page needs of the site: {@link page} takes it from the state of the request. */
export interface PageState extends RequestState {
  readonly site: SiteOptions;
}

/** The context of a request for a page. */
export type PageContext = Koa.ParameterizedContext<PageState>;

/** A router of pages. Each part of the site is a function that adds its routes to one. */
export type PageRouter = Router<PageState>;
