import type Koa from 'koa';
import type { Session } from '../../accounts/sessions.js';
import type { PageContext, PageState } from '../context.js';

/** What each page behind sign-in has: {@link requireSession} finds it. */
export interface SettingsState extends PageState {
  /** The session, and the developer who is signed in. */
  readonly session: Session;
}

/** The context of a request behind sign-in. */
export type SettingsContext = Koa.ParameterizedContext<SettingsState>;

/** Answers a request behind sign-in. */
export type SettingsHandler = (ctx: SettingsContext) => unknown;

/** A route's handler, as the router of pages takes it. */
export type PageHandler = (ctx: PageContext) => Promise<void>;
