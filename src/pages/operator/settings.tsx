import type { ComponentChildren } from 'preact';
import { SETTINGS, type Config } from '../../config/settings.js';
import { Table } from '../parts/content/table.js';
import type { PageRouter } from '../parts/context.js';
import type { OperatorParts } from './context.js';
import { operatorPage } from './layout.js';

/** Adds the list of the settings that this server runs with. */
export function addSettings(router: PageRouter, { config }: OperatorParts): void {
  router.get('/settings', (ctx) => {
    operatorPage(
      ctx,
      { title: 'Settings', tab: 'settings' },
      <>
        <p>
          What this server was started with; values that are the default are grey. Change a setting in the environment,
          and restart the server.
        </p>
        <Table
          caption="Settings"
          hasCards
          columns={['Setting', 'Value', 'Meaning']}
          rows={(Object.keys(SETTINGS) as (keyof Config)[]).map((key) => [
            <code>{SETTINGS[key].name}</code>,
            <Value setting={key} config={config} />,
            SETTINGS[key].description,
          ])}
        />
      </>,
    );
  });
}

function Value({ setting, config }: { readonly setting: keyof Config; readonly config: Config }): ComponentChildren {
  const { fallback, isSecret, default: inWords } = SETTINGS[setting];
  const value = config[setting];
  if (value === fallback) return <span class="muted">{inWords}</span>;
  return isSecret ? 'set, not shown' : <code>{textOf(value)}</code>;
}

/** @returns a value as its variable has it */
function textOf(value: Config[keyof Config]): string {
  if (Array.isArray(value)) return (value as readonly Address[]).map(addressOf).join(',');
  if (typeof value === 'object') return addressOf(value as Address);
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return value === undefined ? 'off' : String(value);
}

interface Address {
  readonly host: string;
  readonly port: number;
}

function addressOf({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
