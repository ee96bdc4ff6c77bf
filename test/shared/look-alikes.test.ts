import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { isProviderUp } from '../../src/accounts/check-provider.js';
import { createClient, createTitleCounter, parseBaseUrl } from '../../src/client/client.js';
import { CopySource } from '../../src/client/mirror/copy-source.js';
import { parsePublicUrl } from '../../src/config/parsers.js';
import { openCopyFolder } from '../../src/copies/copy-folder.js';
import { formatManifest, MANIFEST_NAME } from '../../src/copies/manifest.js';
import { isTrustedHost } from '../../src/http/telemetry/metrics-server.js';
import { sendNotice } from '../../src/notices/webhook.js';
import { startScripted, type Scripted, type ScriptedServer } from '../client/scripted-server.js';
import { sampleManifest } from '../copies/sample-manifest.js';
import { lookAlikes } from '../support/http/look-alikes.js';
import { Visitor } from '../support/http/visitor.js';
import { startService, type TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const OWN = 'https://catalog.example.com';

const OWN_HOST = 'catalog.example.com';

const KEY = 'svc_abcdefgh_0123456789';

const RETRY = {
  retryPolicy: { firstMs: 1, longestMs: 1, giveUpAfterMs: 3 },
  signal: new AbortController().signal,
} as const;

/** A place where an address is compared with the one that was configured. */
interface Comparison {
  /** By default {@link OWN}. */
  readonly own?: () => string;
  /** The addresses that are not compared here. */
  readonly skips?: (address: string) => boolean;
  /** Whether an address counts as the configured one. An error is a refusal. */
  readonly accepts: (address: string) => Promise<unknown>;
}

describe('a look-alike of a configured address', () => {
  let service: TestService;
  let restoreFetch: () => void;

  before(async () => {
    service = await startService();
    const { fetch } = globalThis;
    restoreFetch = () => (globalThis.fetch = fetch);
  });

  afterEach(() => restoreFetch());
  after(() => service.stop());

  /** Answers each request that leaves the process, in place of hosts that do not exist. @returns the sent keys */
  function answerWith(body: string): (string | null)[] {
    const sent: (string | null)[] = [];
    globalThis.fetch = (_url, init) => {
      sent.push(new Headers(init?.headers).get('Authorization'));
      return Promise.resolve(new Response(body));
    };
    return sent;
  }

  function source(copiesUrl: string): CopySource {
    return new CopySource({ baseUrl: OWN, copiesUrl: parseBaseUrl(copiesUrl), key: KEY });
  }

  const COMPARISONS: Readonly<Record<string, Comparison>> = {
    'gets no key with a request for copies': {
      async accepts(address) {
        const sent = answerWith('{}');
        await source(address)
          .fetchManifest(RETRY)
          .catch(() => undefined);
        assert.equal(sent.length, 1);
        return sent[0] !== null;
      },
    },
    'is not taken for the service of a copy': {
      async accepts(address) {
        answerWith(JSON.stringify({ ...sampleManifest(), base_url: address }));
        return source('https://copies.example.com').fetchManifest(RETRY);
      },
    },
    'is not taken for the service of a folder of copies': {
      async accepts(address) {
        const folder = await temporaryFolder();
        await writeFile(join(folder, MANIFEST_NAME), formatManifest({ ...sampleManifest(), base_url: OWN }));
        const opened = await openCopyFolder(folder, address);
        await opened.close();
        return true;
      },
    },
    'is not taken for the sign-in provider': {
      async accepts(address) {
        answerWith(JSON.stringify({ issuer: address }));
        return isProviderUp(OWN);
      },
    },
    'sends no form': {
      own: () => service.publicUrl,
      async accepts(origin) {
        const { status } = await new Visitor(service.url).post('/settings/sessions/end', {}, { origin });
        return status !== 403;
      },
    },
    'reads no metrics': {
      async accepts(address) {
        const { host } = new URL(address);
        return isTrustedHost(host, OWN_HOST) || isTrustedHost(`[${host}]`, OWN_HOST);
      },
      // The port of the host is that of the server, and its scheme is never sent.
      skips: (address) => [`${OWN_HOST}:1`, OWN_HOST].includes(new URL(address).host),
    },
    'is no address of this machine, which needs no TLS': {
      own: () => 'http://localhost',
      accepts: async (address) => parsePublicUrl(address),
      skips: (address) => address.startsWith('https:') || address === 'http://localhost:1',
    },
  };

  for (const [what, { own = () => OWN, accepts, skips = () => false }] of Object.entries(COMPARISONS)) {
    it(`a look-alike of a configured address ${what}`, async () => {
      assert.ok(await accepts(own()), 'the address itself');
      for (const address of lookAlikes(own())) {
        if (URL.canParse(address) && skips(address)) continue;
        const isAccepted = await accepts(address).catch(() => false);
        assert.ok(!isAccepted, address);
      }
    });
  }
});

describe('a redirect of a request with a secret', () => {
  const servers: ScriptedServer[] = [];

  afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));

  async function start(...script: Scripted[]): Promise<ScriptedServer> {
    const server = await startScripted(script);
    servers.push(server);
    return server;
  }

  const { signal } = RETRY;
  const sourceAt = (baseUrl: string, copiesUrl = `${baseUrl}/copies`) =>
    new CopySource({ baseUrl, copiesUrl, key: KEY });

  /** What sends a secret to an address. */
  const SENDERS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
    'a poll': (baseUrl) => createClient({ baseUrl, key: KEY })(1, signal),
    'a request for the number of titles': (baseUrl) => createTitleCounter({ baseUrl, key: KEY })(signal),
    'a request for a manifest': (baseUrl) => sourceAt(baseUrl).fetchManifest(RETRY),
    'a download': (baseUrl) => buffer(sourceAt(baseUrl).downloadTitles(sampleManifest(), RETRY)),
    'a notice': async (url) => {
      const secret = Buffer.from(generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }));
      const notice = { id: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', type: 'notice.test', occurredAt: '', data: {} };
      const { kind } = await sendNotice({ url, secret }, notice);
      assert.equal(kind, 'delivered');
    },
  };

  for (const [what, send] of Object.entries(SENDERS)) {
    it(`a redirect of ${what} is not followed, to another host, another port or another path`, async () => {
      const other = await start({ body: {} });
      for (const target of [other.url.replace('127.0.0.1', 'localhost'), other.url, '/elsewhere']) {
        for (const status of [301, 302, 303, 307, 308]) {
          const server = await start({ status, body: '', headers: { Location: target } });
          await assert.rejects(send(server.url), `${target} ${status}`);
          assert.deepEqual([server.requests.length, other.requests.length], [1, 0], `${target} ${status}`);
        }
      }
    });
  }

  it('a redirect of a public host of copies is followed without a key, also if it leads to the service', async () => {
    const service = await start({ body: 'null' });
    const host = await start({ status: 302, body: '', headers: { Location: `${service.url}/copies/manifest.json` } });
    await assert.rejects(sourceAt(service.url, host.url).fetchManifest(RETRY), /The manifest is not valid/);
    assert.deepEqual(
      [...host.requests, ...service.requests].map(({ authorization }) => authorization),
      [undefined, undefined],
    );
  });
});
