import { readFileSync } from 'node:fs';
import { operationsOf, resolve, type Contract } from '../../../src/pages/public/reference/contract.js';
import { ROOT } from '../guides.js';

const contract = JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Contract;

const HOUR_S = 3_600;

/**
 * An address of each operation of the contract, by its operationId, made from the examples of its required parameters.
 * It is answered with 200 on the demo catalogue.
 *
 * @param values - of parameters, in place of their examples; `since` is an hour ago unless it is among them
 */
export function addresses(values: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const since = String(Math.floor(Date.now() / 1000) - HOUR_S);
  return Object.fromEntries(
    operationsOf(contract).map(({ operationId, path, parameters = [] }) => {
      const query: string[] = [];
      let filled = path;
      for (const parameter of parameters) {
        const { name, in: place, required, example } = resolve(contract, parameter).part;
        if (required !== true) continue;
        const value = { since, ...values }[name] ?? String(example);
        if (place === 'path') filled = filled.replace(`{${name}}`, encodeURIComponent(value));
        else query.push(`${name}=${encodeURIComponent(value)}`);
      }
      return [operationId, query.length === 0 ? filled : `${filled}?${query.join('&')}`];
    }),
  );
}
