import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { RequestContext } from '../request/context.js';
import { chooseCoding, encode, type ContentCoding, type Effort } from './content-coding.js';

/** The opaque part of an entity tag. `If-None-Match` ignores whether a tag is weak (RFC 9110, section 8.8.3). */
const OPAQUE_TAG = /"[^"]*"/g;

/** Content with its strong entity tag (RFC 9110, section 8.8.3). It is compressed at most once for each coding. */
export class Representation {
  readonly #tag: string;
  readonly #coded = new Map<ContentCoding, Promise<Buffer>>();

  /**
   * @param mediaType - with its parameters, as in `Content-Type`
   * @param effort - how well to compress it: `small` pays where it is kept for many responses
   */
  constructor(
    private readonly content: string | Buffer,
    private readonly mediaType: string,
    private readonly effort: Effort = 'fast',
  ) {
    this.#tag = `"${Buffer.byteLength(content).toString(16)}-${hash('sha1', content, 'base64').slice(0, -1)}"`;
  }

  /**
   * Answers 200 with the content, or 304 if the client already has it.
   *
   * @param cacheControl - the value of `Cache-Control`
   * @param compress - whether to compress the content for clients that accept it
   */
  async send(ctx: RequestContext, cacheControl: string, compress = true): Promise<void> {
    const { 'accept-encoding': accepted } = ctx.req.headers;
    const coding = compress ? chooseCoding(accepted, Buffer.byteLength(this.content), this.effort) : undefined;
    // Other bytes need another tag (RFC 9110, section 8.8.3.3).
    const tag = coding === undefined ? this.#tag : `${this.#tag.slice(0, -1)}-${coding}"`;
    const isKnown = clientHas(ctx.req, tag);
    // Before any field is set: a problem must not carry the fields of this answer.
    const body = coding === undefined || isKnown ? this.content : await this.#encoded(coding);
    // Even if this answer is not compressed: another Accept-Encoding may get another one (section 12.5.5).
    if (compress) ctx.vary('Accept-Encoding');
    ctx.set({ 'Cache-Control': cacheControl, ETag: tag });
    if (isKnown) {
      ctx.status = 304;
      return;
    }
    ctx.status = 200;
    ctx.set('Content-Type', this.mediaType);
    if (coding !== undefined) ctx.set('Content-Encoding', coding);
    ctx.body = body;
  }

  #encoded(coding: ContentCoding): Promise<Buffer> {
    const coded = this.#coded.get(coding) ?? encode(this.content, coding, this.effort);
    this.#coded.set(coding, coded);
    return coded;
  }
}

/**
 * Whether `If-None-Match` names an entity tag (RFC 9110, section 13.1.2).
 *
 * Koa's `ctx.fresh` also evaluates `Cache-Control: no-cache`, which `fetch` adds to every request with `If-None-Match`:
 * its users would never get a 304.
 */
export function clientHas(request: IncomingMessage, tag: string): boolean {
  const field = request.headers['if-none-match'];
  if (field === undefined) return false;
  // Apache changes the tag of content that it compresses.
  const names = [tag, `${tag.slice(0, -1)}-gzip"`];
  return field.trim() === '*' || (field.match(OPAQUE_TAG)?.some((known) => names.includes(known)) ?? false);
}
