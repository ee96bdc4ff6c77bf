import type { PublishedFolder } from '../../copies/published.js';

/** The newest published copy that this server serves. */
export type NewestCopy =
  | { readonly kind: 'none' }
  /** The folder cannot be read, or its manifest is damaged. */
  | { readonly kind: 'unreadable' }
  /** The time in milliseconds since 1970, and whether it is so long ago that mirrors soon cannot begin with the copy. */
  | { readonly kind: 'copy'; readonly createdAt: number; readonly isOld: boolean };

/** Half of the feed's window, as in the alert, in milliseconds. */
const OLD_AFTER_MS = 15 * 86_400_000;

export async function readNewestCopy(copies: PublishedFolder): Promise<NewestCopy> {
  try {
    const published = await copies.read();
    if (published === undefined) return { kind: 'none' };
    const createdAt = Date.parse(published.newest.created_at);
    return { kind: 'copy', createdAt, isOld: Date.now() - createdAt > OLD_AFTER_MS };
  } catch {
    return { kind: 'unreadable' };
  }
}
