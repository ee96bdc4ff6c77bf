import type { SettingsContext } from './guards.js';
import { settingsPage, TABS } from './settings-page.js';

/** Answers a suspended developer with a link to what can still be read. The frame explains the suspension. */
export function answerSuspended(ctx: SettingsContext): void {
  const { id, path, label } = TABS.findLast((tab) => ctx.path.startsWith(tab.path)) ?? TABS[0];
  settingsPage(
    ctx,
    { title: 'Account suspended', tab: id, status: 403 },
    <>
      <p>
        {ctx.method === 'POST' && <strong>Nothing was changed. </strong>}
        You cannot use this page while your account is suspended.
      </p>
      <p>
        <a class="button" href={path}>
          Go to your {label.toLowerCase()}
        </a>
      </p>
    </>,
  );
}
