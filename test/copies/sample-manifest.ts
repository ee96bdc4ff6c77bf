import { COPIED } from '../../src/catalog/columns.js';
import type { Manifest } from '../../src/copies/manifest.js';

/** A valid manifest without a signature. Its files do not exist. */
export function sampleManifest(): Manifest {
  return {
    version: 1,
    created_at: '2026-11-23T22:50:00.000Z',
    base_url: 'https://catalog.example.com',
    position: 1_795_474_200.123_456,
    feed_id: '0b8f6c1e-52d3-4a7e-9c41-7f0e2d9a6b35',
    complete_until: 1_795_474_140.000_001,
    files: Object.entries(COPIED).map(([kind, columns]) => ({
      kind,
      name: `${kind}-1795474200123456.ndjson.gz`,
      bytes: 20,
      decoded_bytes: 0,
      rows: 0,
      sha256: 'a'.repeat(64),
      columns,
    })),
  };
}
