import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { send, type Reply } from '../request.js';
import type { TestService } from '../service.js';

/** A minimal browser: it keeps cookies and names the origin of its requests. */
export class Visitor {
  readonly cookies = new Map<string, string>();

  constructor(
    readonly url: string,
    /** The fields of each request. */
    readonly headers: Record<string, string> = { 'user-agent': 'Visitor/1' },
  ) {}

  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.#send(path, { method: 'GET', headers });
  }

  /** Sends a form, from a page of the service unless the headers say otherwise. */
  post(path: string, fields: Record<string, string> = {}, headers?: Record<string, string>): Promise<Reply> {
    return this.#send(path, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        ...(headers ?? { 'sec-fetch-site': 'same-origin' }),
      },
    });
  }

  async #send(
    path: string,
    { headers, ...options }: { method: string; body?: string; headers: Record<string, string> },
  ): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await send(this.url, path, {
      ...options,
      headers: { ...this.headers, ...(cookie !== '' && { cookie }), ...headers },
    });
    for (const line of reply.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return reply;
  }
}

/** Signs a developer in by a link. @returns the browser that is signed in */
export async function signIn(
  service: Pick<TestService, 'url' | 'db'>,
  developerId: number,
  visitor?: Visitor,
): Promise<Visitor> {
  const browser = visitor ?? new Visitor(service.url);
  const reply = await browser.post('/sign-in/link', { token: await createSignInLink(service.db, developerId) });
  if (reply.status !== 303) throw new Error(`not signed in: ${reply.status} ${reply.text}`);
  return browser;
}
