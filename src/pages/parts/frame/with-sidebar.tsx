import type { VNode } from 'preact';

/** Links under a title, each with its address and its text. */
export interface LinkGroup {
  readonly title: string;
  readonly links: readonly (readonly [address: string, text: string])[];
}

interface WithSidebarProps {
  /** The name of the links, for screen readers. */
  readonly label: string;
  readonly groups: readonly LinkGroup[];
  /** The address whose link is marked as the current page. */
  readonly current?: string;
  /** One element of the class `content`. */
  readonly children: VNode;
}

/** A wide page with a table of contents at its side. */
export function WithSidebar({ label, groups, current, children }: WithSidebarProps): VNode {
  return (
    <div class="container with-sidebar">
      <div class="sidebar">
        <nav aria-label={label}>
          <details>
            <summary>Contents</summary>
            <div class="sidebar-links">
              {groups.map(({ title, links }) => (
                <>
                  <p class="sidebar-title">{title}</p>
                  <ul aria-label={title}>
                    {links.map(([address, text]) => (
                      <li key={address}>
                        <a href={address} aria-current={address === current ? 'page' : undefined}>
                          {text}
                        </a>
                      </li>
                    ))}
                  </ul>
                </>
              ))}
            </div>
          </details>
        </nav>
      </div>
      {children}
    </div>
  );
}
