import type { ComponentChildren, VNode } from 'preact';
import type { PageContext } from '../context.js';
import { takeNotice } from './notices.js';
import { answerPage, type PageOptions } from './page.js';
import { Button, isolated, UserText } from '../content/components.js';
import { PlanNames } from '../content/plan-name.js';

/** The pages of one kind of reader. */
export interface SignedInArea<Id extends string> {
  /** The name of the navigation. */
  readonly name: string;
  /** The pages that the navigation lists. */
  readonly tabs: readonly { readonly id: Id; readonly path: string; readonly label: string }[];
  /** Whose pages they are: a name that a user may have chosen. */
  readonly owner: string;
  /** Shown above the heading of every page. */
  readonly warning?: ComponentChildren;
}

/** The title of a page behind sign-in, and its place in the navigation. */
export interface SignedInPageOptions<Id extends string> extends Omit<PageOptions, 'hasErrors'> {
  readonly tab: Id;
  /** Whether the title is a name that a user chose. */
  readonly isUserText?: boolean;
  /** Whether the page has its own heading. Then only screen readers read the title, which the tab shows. */
  readonly hasOwnHeadings?: boolean;
  /** The page above this one. */
  readonly trail?: { readonly path: string; readonly label: ComponentChildren } | undefined;
}

/** The navigation of an area. */
export function AreaNavigation<Id extends string>({
  name,
  tabs,
  tab,
}: Pick<SignedInArea<Id>, 'name' | 'tabs'> & { readonly tab: Id }): VNode {
  return (
    <nav class="settings-nav" aria-label={name}>
      <ul>
        {tabs.map(({ id, path, label }) => (
          <li key={id}>
            <a href={path} aria-current={id === tab ? 'page' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/**
 * Answers with a page behind sign-in: its owner, the sign-out button, the navigation, the confirmation of the last
 * action, and the body under its heading.
 */
export function signedInPage<Id extends string>(
  ctx: PageContext,
  { name, tabs, owner, warning }: SignedInArea<Id>,
  { tab, trail, title, isUserText = false, hasOwnHeadings = false, ...options }: SignedInPageOptions<Id>,
  body: ComponentChildren,
): void {
  const notice = takeNotice(ctx);
  const hasErrors = (options.status ?? 200) >= 400 || notice?.props.role === 'alert';
  const windowTitle = `${isUserText ? isolated(title) : title} · ${isolated(owner)}`;
  answerPage(
    ctx,
    { ...options, title: windowTitle, hasErrors, contentId: 'content' },
    <div class="container">
      <header class="settings-header">
        <p class="settings-project">
          <UserText text={owner} />
        </p>
        <form method="post" action="/sign-out">
          <Button tone="quiet" label="Sign out" />
        </form>
      </header>
      <AreaNavigation name={name} tabs={tabs} tab={tab} />
      <div id="content" tabIndex={-1}>
        {warning}
        {notice}
        {trail !== undefined && (
          <p class="trail">
            <a href={trail.path}>{trail.label}</a>
          </p>
        )}
        <h1 class={hasOwnHeadings ? 'visually-hidden' : undefined}>{isUserText ? <UserText text={title} /> : title}</h1>
        <PlanNames.Provider value={ctx.state.planNames ?? new Map<string, string>()}>{body}</PlanNames.Provider>
      </div>
    </div>,
  );
}
