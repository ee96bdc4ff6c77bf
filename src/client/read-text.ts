/**
 * Reads a response as text, up to a bound on its decoded size: compression multiplies what a few bytes on the wire
 * become, and a response may have no end.
 *
 * @returns undefined if it is larger; the rest is not read
 */
export async function readText({ body }: Response, maxBytes: number): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (body ?? []) as unknown as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) return undefined;
    pieces.push(piece);
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}
