import type { ComponentChildren, VNode } from 'preact';

/** A page of a navigation. */
interface TabLink {
  readonly id: string;
  readonly path: string;
  readonly label: string;
}

/** What a page behind sign-in is called, and where it belongs. */
export interface SignedInPageOptions<Id extends TabLink['id']> {
  /** The heading, and the title of the window. */
  readonly title: string;
  readonly tab: Id;
  /** 200 where it is left out. */
  readonly status?: number | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
  /** The page above this one. */
  readonly trail?: { readonly path: string; readonly label: string } | undefined;
}

interface SignedInFrameProps extends Pick<SignedInPageOptions<string>, 'title' | 'tab' | 'trail'> {
  /** Whose pages they are. */
  readonly owner: ComponentChildren;
  /** The name of the navigation. */
  readonly name: string;
  readonly tabs: readonly TabLink[];
  /** Shown above the heading. */
  readonly notices: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of every page behind sign-in: whose it is, the way out, the navigation, and the body under its heading. */
export function SignedInFrame({ owner, name, tabs, tab, notices, trail, title, children }: SignedInFrameProps): VNode {
  return (
    <div class="container-wide">
      <header class="settings-header">
        <p class="settings-project">{owner}</p>
        <form method="post" action="/sign-out">
          <button class="button button-quiet" type="submit">
            Sign out
          </button>
        </form>
      </header>
      <nav class="settings-nav" aria-label={name}>
        <ul>
          {tabs.map(({ id, path, label }) => (
            <li key={id}>
              <a href={path} data-text={label} aria-current={id === tab ? 'page' : undefined}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {notices}
      {trail !== undefined && (
        <p class="trail">
          <a href={trail.path}>{trail.label}</a>
        </p>
      )}
      <h1>{title}</h1>
      {children}
    </div>
  );
}
