import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { fieldValues } from './field-values.js';

/**
 * Finds the address that a request comes from.
 *
 * Each proxy appends the address of its client to `X-Forwarded-For`. Entries further left come from the client and may
 * be invented. So the entry counts that the first of our own proxies wrote, counted from the right.
 *
 * @param trustedProxies - how many proxies stand in front of the service; with 0 the field is ignored
 * @returns an IPv4 address, or the first 64 bits of an IPv6 address, which a network gives to one customer
 */
export function clientAddress(request: IncomingMessage, trustedProxies: number): string {
  let address = request.socket.remoteAddress ?? '';
  if (trustedProxies > 0) {
    const forwarded = fieldValues(request, 'x-forwarded-for').join(',').split(',');
    for (const entry of forwarded.reverse().slice(0, trustedProxies)) {
      const parsed = withoutPort(entry.trim());
      // The entry is no address, such as "unknown". Then the proxy that wrote it is the nearest known address.
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
  if (isIP(plain) === 0) return plain;
  // As IPv4 where an IPv6 address only carries one.
  const parsed = ipaddr.process(plain);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const groups = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
