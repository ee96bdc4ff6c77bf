import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { fieldValues } from './target.js';

/**
 * Returns the address that a request comes from.
 *
 * Each proxy appends the address of its client to `X-Forwarded-For`, so the last entries come from trusted proxies.
 * Entries further left come from the client, which may have invented them.
 *
 * @param trustedProxies - number of trusted proxies in front of the service; 0 ignores the field
 * @returns an IPv4 address, or the first 64 bits of an IPv6 address, which providers assign to one customer
 */
export function clientAddress(request: IncomingMessage, trustedProxies: number): string {
  let address = request.socket.remoteAddress ?? '';
  if (trustedProxies > 0) {
    const forwarded = fieldValues(request, 'x-forwarded-for').join(',').split(',');
    for (const entry of forwarded.reverse().slice(0, trustedProxies)) {
      const parsed = withoutPort(entry.trim());
      // Not an address, such as "unknown": the proxy that wrote it is the nearest known address.
      if (isIP(parsed) === 0) break;
      address = parsed;
    }
  }
  return networkOf(address);
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
}

function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  if (isIP(plain) !== 6) return plain;
  // The URL parser normalises: lower case, no leading zeros, no dotted part.
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(canonical);
  if (mapped !== null) {
    const [high = 0, low = 0] = mapped.slice(1).map((group) => parseInt(group, 16));
    return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  }
  const [head = '', tail] = canonical.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
}
