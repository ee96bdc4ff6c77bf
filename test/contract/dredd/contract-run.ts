import type { DreddAnswer, DreddStats, Transaction } from 'dredd';
import { deviations, type Answer } from '../document/conformance.js';
import { child, operationResponses, resolve, type Node } from '../document/document.js';
import { perform, runDredd, type Outcome } from './dredd.js';
import type { Exchange } from '../document/exchanges.js';
import { jsonSchema } from '../document/json-schema.js';
import { patience, type Wait } from './patience.js';

/** What became of one exchange. */
export interface Result extends Outcome {
  readonly exchange: Exchange;
  /** Undefined where there was none. */
  readonly answer: Answer | undefined;
}

/** A contract run as a whole. */
export interface ContractRun {
  readonly results: readonly Result[];
  /** Dredd's own numbers. */
  readonly stats: DreddStats;
  /** What Dredd would have printed as warnings. */
  readonly warnings: readonly string[];
}

export interface ContractRunOptions {
  readonly hookFile?: string;
  /** Called with each result when it is known. */
  readonly onResult?: (result: Result) => void;
  /** Waits when the plan's limit is used up. */
  readonly wait?: Wait;
}

/** Refuses connections at once. */
const NOWHERE = 'http://127.0.0.1:1';

/** Performs exchanges with Dredd and holds the answers against the contract. */
export async function runContract(
  exchanges: readonly Exchange[],
  options: ContractRunOptions = {},
): Promise<ContractRun> {
  const { hookFile, onResult, wait } = options;
  const byName = new Map(exchanges.map((exchange) => [exchange.name, exchange]));
  if (byName.size !== exchanges.length) throw new Error('Two exchanges have the same name');
  const exchangeOf = (transaction: { id: string }): Exchange => {
    const exchange = byName.get(transaction.id);
    if (exchange === undefined) throw new Error(`There is no request that provokes ${transaction.id}`);
    return exchange;
  };
  const results: Result[] = [];
  const answers = new Map<string, Answer>();
  const persist = patience(wait);

  const { stats, warnings } = await runDredd({
    // Each transaction is given its own address.
    baseUrl: NOWHERE,
    ...(hookFile !== undefined && { hookFile }),
    hooks: {
      select: (transactions) => selectTransactions(transactions, exchanges),
      async prepare(transaction) {
        const { revalidates, url, method, headers, skip } = exchangeOf(transaction);
        transaction.skip = skip !== undefined;
        if (!revalidates || transaction.skip) return;
        const ask = () => perform(url, { method, headers: { ...headers } });
        const { statusCode, headers: received } = await persist(await ask(), ask);
        if (received.etag === undefined) throw new Error(`no ETag to send back: the first answer was ${statusCode}`);
        transaction.request.headers['if-none-match'] = String(received.etag);
      },
      async verify(transaction) {
        const exchange = exchangeOf(transaction);
        const { real, request } = transaction;
        if (real === undefined) return ['there was no answer'];
        transaction.real = exchange.status === 429 ? real : await persist(real, () => perform(exchange.url, request));
        const answer = readAnswer(transaction.real);
        answers.set(transaction.id, answer);
        return deviations(exchange, answer);
      },
    },
    onOutcome(outcome) {
      const exchange = byName.get(outcome.id);
      if (exchange === undefined) return;
      const reasons = exchange.skip === undefined ? outcome.reasons : [exchange.skip];
      const result = { ...outcome, exchange, reasons, answer: answers.get(outcome.id) };
      results.push(result);
      onResult?.(result);
    },
  });
  return { results, stats, warnings };
}

/** A copy, for each exchange, of the transaction that Dredd made from the response that the exchange should get. */
function selectTransactions(compiled: readonly Transaction[], exchanges: readonly Exchange[]): Transaction[] {
  const responses = operationResponses();
  return exchanges.map((exchange) => {
    const { name, operationId, status, method, url, headers } = exchange;
    const documented = responses.find((it) => it.operationId === operationId && it.status === String(status));
    const transaction = compiled.find(
      ({ origin, request, expected }) =>
        origin.resourceName === documented?.path &&
        request.method === documented.method &&
        expected.statusCode === documented.status,
    );
    if (documented === undefined || transaction === undefined) throw new Error(`Dredd found no response for ${name}`);
    const { protocol, hostname, port, origin } = new URL(url);
    const copy = structuredClone(transaction);
    return {
      ...copy,
      id: name,
      protocol,
      host: hostname,
      port: port || null,
      fullPath: url.slice(origin.length),
      request: { ...copy.request, method, headers: { ...headers } },
      expected: expectedOf(copy.expected, documented.response),
    };
  });
}

/**
 * What Dredd itself should look for. By itself it takes every documented header for a required one. Of a body it only
 * checks that the members of the example are there.
 */
function expectedOf({ statusCode, headers }: Transaction['expected'], response: Node): Transaction['expected'] {
  const isRequired = (name: string) => {
    const header = child(child(response, 'headers'), name);
    return name === 'Content-Type' || resolve(header).required === true;
  };
  const required = Object.fromEntries(Object.entries(headers).filter(([name]) => isRequired(name)));
  const [media] = Object.values(child(response, 'content')) as Node[];
  const schema = media && { $schema: 'http://json-schema.org/draft-07/schema#', ...jsonSchema(child(media, 'schema')) };
  return { statusCode, headers: required, ...(schema && { bodySchema: JSON.stringify(schema) }) };
}

function readAnswer({ statusCode, headers, body = '', bodyEncoding }: DreddAnswer): Answer {
  return { status: statusCode, headers, body: Buffer.from(body, bodyEncoding).toString('utf8') };
}
