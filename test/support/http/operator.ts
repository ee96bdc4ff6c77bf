import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { createOperatorLink } from '../../../src/accounts/sign-in-links.js';
import { Visitor } from './visitor.js';

/** Where a service has its operator pages. It needs the setting METRICS_ADDRESS. */
export interface OperatedService {
  readonly operatorUrl: string | undefined;
  readonly db: Knex;
}

/** Signs an operator in by a link. @returns the browser that is signed in */
export async function signInOperator({ operatorUrl = assert.fail('no pages'), db }: OperatedService): Promise<Visitor> {
  const browser = new Visitor(operatorUrl);
  const { status, text } = await browser.post('/sign-in', { token: await createOperatorLink(db) });
  assert.equal(status, 303, text);
  return browser;
}
