import type { ComponentChildren } from 'preact';
import { SETTINGS, type Config } from '../../config/settings.js';
import { authority } from '../../http/connection/server.js';
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
          The settings of this server; default values are grey. To change one, set its environment variable and restart
          the server.
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

interface Address {
  readonly host: string;
  readonly port: number;
}

/** @returns a value as its variable has it */
function textOf(value: Config[keyof Config]): string {
  if (typeof value === 'object') {
    const addresses: readonly Address[] = [value as Address | readonly Address[]].flat();
    return addresses.map(({ host, port }) => authority(host, port)).join(',');
  }
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return value === undefined ? 'off' : String(value);
}
