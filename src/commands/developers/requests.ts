import type { Knex } from 'knex';
import { findDeveloper } from '../../developers/developers.js';
import { KEPT_FAILURE_DAYS, KEPT_FAILURES, listFailures, type FailedRequest } from '../../usage/failed-requests.js';
import { KEPT_OF_HOUR } from '../../usage/failure-log.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { age, type Columns } from '../output/table.js';

const NOTES = `The last ${KEPT_FAILURES} of the developer within ${KEPT_FAILURE_DAYS} days are kept; of each key, error and operation, the first ${KEPT_OF_HOUR} of an
hour and then one a second from each server. Servers save them about every 10 seconds.`;

const COLUMNS: Columns<FailedRequest> = {
  at: ({ at }) => age(at),
  key: ({ keyPrefix }) => keyPrefix,
  request: ({ method, path }) => `${method} ${path}`,
  status: ({ status }) => status,
  code: ({ code }) => code,
  'request id': ({ requestId }) => requestId,
  detail: ({ detail }) => detail,
};

interface RequestsOptions extends JsonFlag {
  readonly developer: number;
  readonly requestId?: string;
  readonly limit: number;
}

export const registerRequests: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'requests', 'catalog requests --developer 1', NOTES)
    .description('List the request errors of a developer, newest first: which, when, and why.')
    .requiredOption('--developer <id>', 'whose requests', positiveInteger)
    .option('--request-id <id>', 'only the request with this id, or its beginning; every error contains it')
    .option('--limit <number>', 'maximum number of requests', positiveInteger, KEPT_FAILURES)
    .action(({ developer, requestId, limit, json }: RequestsOptions) => {
      const read = async function* (db: Knex) {
        await findDeveloper(db, developer);
        yield listFailures(db, { developerId: developer, requestId, limit });
      };
      const toDocument = ({ id: _place, ...request }: FailedRequest) => request;
      return reportRows(context, json, read, { name: 'requests', columns: COLUMNS, toDocument });
    });
};
