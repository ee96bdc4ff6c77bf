import assert from 'node:assert/strict';
import { readReadme } from '../../support/guides.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { FILES, PAGES } from '../pages.js';

/** The origin that the README writes. */
const LOCAL = 'http://127.0.0.1:8080';

describe('the base URL', () => {
  let service: TestService;
  let paths: RegExp[];

  before(async () => {
    service = await startService();
    const contract = (await send(service.url, '/openapi.json')).json as { paths: object };
    paths = Object.keys(contract.paths).map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
  });

  after(() => service.stop());

  /** Fails unless each URL of the API in a text is one of the contract. @returns how many there are */
  function assertUrls(text: string, origin: string, place: string): number {
    const found = Array.from(text.matchAll(/https?:\/\/[\w.:-]+\/(?:[\w.:-]+\/)*v\d\b[\w/.-]*/g), ([url]) => url);
    for (const url of found) {
      assert.ok(url.startsWith(`${origin}/`), `${place}: ${url}`);
      const path = url.slice(origin.length).replace(/[./]+$/, '');
      assert.ok(
        paths.some((each) => each.test(path)),
        `${place}: ${url}`,
      );
    }
    return found.length;
  }

  it('every URL of the API on a page, in a guide and in the README is the origin and a path of the contract', async () => {
    let count = assertUrls(await readReadme(), LOCAL, 'README');
    for (const path of [...PAGES, ...FILES]) {
      const { text } = await send(service.url, path, { headers: { accept: 'text/html' } });
      count += assertUrls(text.replaceAll(LOCAL, service.url), service.url, path);
    }
    assert.ok(count > 30, `${count} URLs`);
  });

  it('every base URL that is named is the origin, also for a client that reads the contract', async () => {
    const named: string[] = [];
    for (const path of [...PAGES, ...FILES]) {
      const { text } = await send(service.url, path, { headers: { accept: 'text/html' } });
      const shown = text.replaceAll(LOCAL, service.url);
      for (const pattern of [
        /<dt>Base URL<\/dt><dd><code>([^<]+)<\/code>/g,
        /\bbase URL is (https?:\S+?)\.?\s/g,
        /\bbaseUrl: (?:'|&#x27;)(\S+?)(?:'|&#x27;)/g,
      ]) {
        named.push(...Array.from(shown.matchAll(pattern), ([, url = '']) => url));
      }
    }
    assert.ok(named.length >= 5, `${named.length} base URLs`);
    assert.deepEqual(new Set(named), new Set([service.url]));
    for (const document of ['/openapi.json', '/openapi.yaml']) {
      const { text } = await send(service.url, document);
      const [, server = assert.fail(document)] = /"?servers"?:\s*(?:\[\{|- )"?url"?:\s*"?([^\s",]+)/.exec(text) ?? [];
      assert.equal(new URL(server, `${service.url}${document}`).href, `${service.url}/`);
    }
  });
});
