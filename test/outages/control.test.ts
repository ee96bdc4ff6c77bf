import assert from 'node:assert/strict';
import type { Reply } from '../support/request.js';
import { testWorld } from '../support/world.js';
import { Load } from './load.js';
import { prepareCatalogue, prepareQuestions, type Question, type Questions, type Verdict } from './questions.js';

type Changes = Partial<Pick<Reply, 'status' | 'headers' | 'text' | 'json'>>;

// The suites of this folder prove something only if the judge of their answers finds what is wrong.
describe('the judge of answers during outages', () => {
  const world = testWorld({ service: true });
  let questions: Questions;
  const replies = new Map<Question, Reply>();
  const verdicts = new Set<Verdict>();

  before(async () => {
    await prepareCatalogue(world.db);
    questions = await prepareQuestions(world.db, world.service.url);
    for (const question of questions.all) {
      const reply = await world.service.get(question.path, { headers: question.headers() });
      replies.set(question, reply);
      verdicts.add(question.judge(reply, 0));
    }
  });

  it('the judge accepts every correct answer', () => assert.deepEqual(verdicts, new Set(['served', 'refused'])));

  const without = ({ headers }: Reply, name: string): Changes => ({ headers: { ...headers, [name]: undefined } });

  const ALTERATIONS: Readonly<Record<string, (reply: Reply, question: string) => Changes | undefined>> = {
    'a count that is one less': ({ text }, question) =>
      question.endsWith('/stats') ? { json: JSON.parse(text.replace(':40', ':39')) } : undefined,
    'a feed without one of its entries': ({ text }, question) =>
      question.includes('/changes')
        ? { json: JSON.parse(text.replace(/\{"svc_id":"title-0009".*?\},/, '')) }
        : undefined,
    'a valid key that is refused': ({ status }) => (status === 200 ? { status: 401 } : undefined),
    'an invalid key that is accepted': ({ status }) => (status === 401 ? { status: 200 } : undefined),
    'an answer without RateLimit': (reply) => (reply.status === 200 ? without(reply, 'ratelimit') : undefined),
    'a 401 without WWW-Authenticate': (reply) =>
      reply.status === 401 ? without(reply, 'www-authenticate') : undefined,
    'a problem of another code': ({ status, json }) =>
      status === 401 ? { json: { ...(json as object), code: 'internal_error' } } : undefined,
    'a 304 for another body': ({ status, headers }) =>
      status === 304 ? { headers: { ...headers, etag: '"other"' } } : undefined,
    'a 503 without Retry-After': () => ({ status: 503 }),
    'a 500': () => ({ status: 500 }),
  };
  for (const [what, alter] of Object.entries(ALTERATIONS)) {
    it(`the judge finds ${what}`, () => {
      let altered = 0;
      for (const [question, reply] of replies) {
        const changes = alter(reply, question.name);
        if (changes === undefined) continue;
        altered += 1;
        assert.equal(typeof question.judge({ ...reply, ...changes }, 0), 'object', question.name);
      }
      assert.ok(altered > 0);
    });
  }

  it('the judge finds a revoked key that is accepted', () => {
    // It is not revoked at all.
    questions.noteRevoked();
    const [doomed = assert.fail()] = questions.all.filter(({ name }) => name === 'doomed');
    assert.equal(typeof doomed.judge(replies.get(doomed) ?? assert.fail(), performance.now() + 1), 'object');
  });

  it('the judge finds a 503 where nothing is lost, and a connection that is refused', async () => {
    const unavailable = { ...(questions.all[0] ?? assert.fail()), judge: () => 'unavailable' as const };
    for (const [url, wrong] of [
      [world.service.url, /503 where nothing needed is lost/],
      ['http://127.0.0.1:1', /ECONNREFUSED/],
    ] as const) {
      const load = new Load([url], [unavailable]);
      const { wrong: found } = await load.stop(url);
      assert.match(found.join(), wrong);
    }
  });
});
