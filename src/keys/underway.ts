/** One for each first character that a digest may have: the code of an ASCII character. Base64 uses 64 of them. */
const PLACES = 128;

interface Reading {
  readonly digest: string;
  readonly ended: Promise<unknown>;
}

/**
 * What is being read of the database now, by the digest of its key in Base64.
 *
 * No Map: V8 has each table that a Map has outgrown point to the next one. Where entries come and go with each request, a
 * single table that has reached the old generation keeps all later ones alive, and with them what every request has made,
 * until a full collection: one every two seconds under load, which holds the process up for 20 ms.
 */
export class Underway {
  readonly #places: readonly Reading[][] = Array.from({ length: PLACES }, () => []);

  /** @returns resolved once the reading has ended, in whatever way; undefined where there is none */
  get(digest: string): Promise<unknown> | undefined {
    return this.#placeOf(digest).find((reading) => reading.digest === digest)?.ended;
  }

  /** Adds a reading until it ends. */
  add(digest: string, reading: Promise<unknown>): void {
    const place = this.#placeOf(digest);
    const ended = reading.then(remove, remove);
    const added = { digest, ended };
    place.push(added);

    function remove(): void {
      const last = place.pop();
      if (last !== undefined && last !== added) place[place.indexOf(added)] = last;
    }
  }

  #placeOf(digest: string): Reading[] {
    const place = this.#places[digest.charCodeAt(0) % PLACES];
    if (place === undefined) throw new RangeError('a digest is not empty');
    return place;
  }
}
