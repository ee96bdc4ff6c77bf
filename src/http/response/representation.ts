import { chooseCoding, codedTag, encode, type ContentCoding } from './content-coding.js';
import { clientHas, entityTag } from './conditional.js';
import type { RequestContext } from '../request/context.js';

/** Content that many requests get: compressed once for each coding, with an entity tag. */
export class Representation {
  readonly #content: Buffer;
  readonly #tag: string;
  readonly #coded = new Map<ContentCoding, Buffer | Promise<Buffer>>();

  /** @param mediaType - with its parameters, as in `Content-Type` */
  constructor(
    content: string | Buffer,
    private readonly mediaType: string,
  ) {
    this.#content = Buffer.from(content);
    this.#tag = entityTag(this.#content);
  }

  /**
   * Answers with the content, or with 304 to a client that has it.
   *
   * @param cacheControl - the value of `Cache-Control`
   */
  async send(ctx: RequestContext, cacheControl: string): Promise<void> {
    const coding = chooseCoding(ctx.req.headers['accept-encoding'], this.#content.length);
    const tag = coding === undefined ? this.#tag : codedTag(this.#tag, coding);
    ctx.vary('Accept-Encoding');
    ctx.set({ 'Cache-Control': cacheControl, ETag: tag });
    if (clientHas(ctx.req, tag)) {
      ctx.status = 304;
      return;
    }
    const body = coding === undefined ? this.#content : await this.#encoded(coding);
    ctx.status = 200;
    ctx.set('Content-Type', this.mediaType);
    if (coding !== undefined) ctx.set('Content-Encoding', coding);
    ctx.body = body;
  }

  #encoded(coding: ContentCoding): Buffer | Promise<Buffer> {
    const known = this.#coded.get(coding);
    if (known !== undefined) return known;
    const made = encode(this.#content, coding);
    this.#coded.set(coding, made);
    return made;
  }
}
