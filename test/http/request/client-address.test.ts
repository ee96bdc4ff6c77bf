import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { clientAddress } from '../../../src/http/request/client-address.js';

/** The address of a request that a connection from `peer` carries. */
function addressOf(peer: string | undefined, forwarded: readonly string[], trustedProxies: number): string {
  const rawHeaders = forwarded.flatMap((entries) => ['X-Forwarded-For', entries]);
  const request = { socket: { remoteAddress: peer }, rawHeaders };
  return clientAddress(request as unknown as IncomingMessage, trustedProxies);
}

describe('the address of a client', () => {
  it('without trusted proxies the address is that of the connection', () => {
    assert.equal(addressOf('192.0.2.1', [], 0), '192.0.2.1');
    assert.equal(addressOf('192.0.2.1', ['198.51.100.7'], 0), '192.0.2.1');
  });

  it('the address of a closed connection is empty', () => {
    assert.equal(addressOf(undefined, [], 0), '');
  });

  it('the entry of X-Forwarded-For that counts is the N-th from the right for N trusted proxies', () => {
    for (const [forwarded, trusted, expected] of [
      [['198.51.100.7'], 1, '198.51.100.7'],
      [['203.0.113.9, 198.51.100.7'], 1, '198.51.100.7'],
      [['203.0.113.9, 198.51.100.7'], 2, '203.0.113.9'],
      [['203.0.113.9', '198.51.100.7'], 2, '203.0.113.9'],
      [['6.6.6.6, 203.0.113.9,198.51.100.7'], 2, '203.0.113.9'],
      [['198.51.100.7'], 3, '198.51.100.7'],
      [[], 2, '10.0.0.1'],
      [[''], 1, '10.0.0.1'],
    ] as const) {
      assert.equal(addressOf('10.0.0.1', forwarded, trusted), expected, `${forwarded.join('; ')} with ${trusted}`);
    }
  });

  it('an entry may have a port, and entries count up to the first that is not an address', () => {
    for (const [forwarded, trusted, expected] of [
      ['198.51.100.7:4711', 1, '198.51.100.7'],
      ['[2001:db8::1]:4711', 1, '2001:db8:0:0::/64'],
      ['[2001:db8::1]', 1, '2001:db8:0:0::/64'],
      ['unknown', 1, '10.0.0.1'],
      ['203.0.113.9, unknown, 198.51.100.7', 3, '198.51.100.7'],
      ['1.2.3', 1, '10.0.0.1'],
      ['<script>', 1, '10.0.0.1'],
      ['198.51.100.7:471a', 1, '10.0.0.1'],
      ['x198.51.100.7:4711', 1, '10.0.0.1'],
      ['[198.51.100.7]:4711', 1, '198.51.100.7'],
      ['x[2001:db8::1]', 1, '10.0.0.1'],
      ['[2001:db8::1]x', 1, '10.0.0.1'],
      ['[2001:db8::1]:', 1, '10.0.0.1'],
      ['[]', 1, '10.0.0.1'],
    ] as const) {
      assert.equal(addressOf('10.0.0.1', [forwarded], trusted), expected, forwarded);
    }
  });

  it('an IPv6 address is reduced to its network of 64 bits, in one spelling', () => {
    for (const [peer, expected] of [
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:DB8:1:2::99', '2001:db8:1:2::/64'],
      ['2001:db8:0001:0002:ffff::', '2001:db8:1:2::/64'],
      ['2001:db8::1', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['1:2:3::8', '1:2:3:0::/64'],
      ['::ffff:192.0.2.1', '192.0.2.1'],
      ['::ffff:c000:201', '192.0.2.1'],
      ['::ffff:0.0.0.255', '0.0.0.255'],
      ['::ffff:1:2:3', '0:0:0:0::/64'],
      ['::1.2.3.4', '0:0:0:0::/64'],
      ['::102:304', '0:0:0:0::/64'],
      ['2001:db8::ffff:c000:201', '2001:db8:0:0::/64'],
      ['1:0:0:4:5:6:7:8', '1:0:0:4::/64'],
      ['0:0:3:4:5:6:7:8', '0:0:3:4::/64'],
      ['1:0:3:4:5:6:7:8', '1:0:3:4::/64'],
      ['1:2:3:4:5:6::', '1:2:3:4::/64'],
      ['1::', '1:0:0:0::/64'],
      ['::', '0:0:0:0::/64'],
    ] as const) {
      assert.equal(addressOf(peer, [], 0), expected, peer);
    }
  });
});
