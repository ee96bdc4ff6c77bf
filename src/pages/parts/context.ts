import type Router from '@koa/router';
import type Koa from 'koa';
import type { Knex } from 'knex';
import type { ComponentChildren, VNode } from 'preact';
import type { OidcProvider } from '../../accounts/oidc-provider.js';
import type { QuotaReader } from '../../admission/charge/limiter.js';
import type { ChangeCallers } from '../../admission/change-callers.js';
import type { FailedAttempts } from '../../limits/failed-attempts.js';
import type { DeadlineParts } from '../../http/request/deadline.js';
import type { RequestState } from '../../http/request/context.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { Representation } from '../../http/response/representation.js';

/** The parts that the pages for people are made from. */
export interface SiteParts extends DeadlineParts {
  /** The primary. */
  readonly db: Knex;
  readonly changeCallers: ChangeCallers;
  /** Counts reports of keys that this service does not have, by the address that sent them. */
  readonly failedReports: FailedAttempts;
  readonly health: Health;
  /** Reads the remaining limits of a developer. */
  readonly limiter: QuotaReader;
  /** How many proxies stand in front of the service. */
  readonly trustedProxies: number;
  readonly site: SiteOptions;
}

/** The fonts that the stylesheet names. */
export const FONTS = ['source-sans-3.woff2', 'ibm-plex-mono.woff2'] as const;

/** The other files that pages load: also the picture that chats show of a link, and the icon on a home screen. */
export const FILES = ['site.js', 'favicon.svg', 'social-card.png', 'apple-touch-icon.png'] as const;

export type FileName = 'site.css' | (typeof FILES | typeof FONTS)[number];

/** The static files of the pages, kept in memory. */
export interface StaticFiles {
  /** Where each is served, with a hash of its content: `/assets/site.3f2a….css`. */
  readonly paths: Readonly<Record<FileName, string>>;
  /** For browsers and programs that request `/favicon.ico` without looking at a page. */
  readonly favicon: Representation;
  /** Every file by its path. */
  readonly representations: ReadonlyMap<string, Representation>;
}

/** The metadata of a page. */
export interface PageDescription {
  /** For the window and for search engines; the heading of the page stands in its body. */
  readonly title: string;
  /** Where the same text is served as Markdown. */
  readonly markdown?: string;
  /** A sentence for search engines. */
  readonly description?: string;
  /** Whether the page shows a form again whose values need a correction: by default one with status 422. */
  readonly hasErrors?: boolean | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
  /** The id of the element that "Skip to content" leads to; by default everything below the header. */
  readonly contentId?: string;
  /** What the page is the answer to, for the search in the header. On a phone, other pages have only its button. */
  readonly query?: string;
  /** The entry of the navigation to mark, if any. */
  readonly section?: 'home' | 'docs' | 'guides' | 'settings';
}

export interface LayoutProps extends PageDescription {
  readonly files: StaticFiles;
  readonly children: ComponentChildren;
}

/** The frame of a page, for developers or for operators. */
export interface PageFrame {
  readonly files: StaticFiles;
  /** The origin of the pages for people, such as `https://catalog.example.com`. Known once the server listens. */
  readonly publicUrl: () => string;
  /** @returns the origin that forms must come from, where it depends on the request; by default {@link publicUrl} */
  readonly formOrigin?: (ctx: PageContext) => string;
  /** @returns the address of the reference, with the guides for developers below it; undefined if it is not served */
  readonly docs: () => string | undefined;
  /** Where developers reach the operator: a `mailto:` or web URL. */
  readonly operatorContact: string | undefined;
  /** How the operator starts this program, such as `node .build/cli.js`: commands on pages begin with it. */
  readonly command: string;
  /** Surrounds the body of a page; by default, the layout of the public pages. */
  readonly Layout?: (props: LayoutProps) => VNode;
}

/** The options of the pages for people. */
export interface SiteOptions extends PageFrame {
  /** The credit that projects must show next to the data, if they are required to. */
  readonly attribution: string | undefined;
  /** Counts sign-ins that failed, by the address that tried. */
  readonly failedSignIns: FailedAttempts;
  /** The identity provider that signs developers in; undefined without one. */
  readonly signInBy:
    | {
        readonly provider: OidcProvider;
        /** As developers call it. */
        readonly name: string;
        /** Whether new identities may sign up. */
        readonly signUp: boolean;
      }
    | undefined;
}

/** The state of a request for a page. */
export interface PageState extends RequestState {
  readonly site: PageFrame;
  /** Whether GET opens a page at a path. */
  readonly hasPage: (path: string) => boolean;
  /** Whether a form may have been processed, in part or as a whole. */
  mayHaveChanged?: boolean;
  /** The content of a POST request. */
  form?: URLSearchParams;
  /** The name of every plan, by its id; for pages that show plans. */
  planNames?: ReadonlyMap<string, string>;
}

/** The context of a request for a page. */
export type PageContext = Koa.ParameterizedContext<PageState>;

/** A router of pages. Each part of the site is a function that adds its routes to one. */
export type PageRouter = Router<PageState>;
