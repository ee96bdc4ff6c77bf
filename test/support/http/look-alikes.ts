/**
 * @param own - an origin, such as `https://catalog.example.com`
 * @returns addresses that begin or end like it, contain it or are read as it, and lead elsewhere
 */
export function lookAlikes(own: string): readonly string[] {
  const { protocol, hostname, host } = new URL(own);
  const at = (authority: string): string => `${protocol}//${authority}`;
  return [
    at(`${hostname}.evil.example`),
    at(`${host}.evil.example`),
    at(`evil-${host}`),
    at(`evil.${host}`),
    at(`${hostname}x`),
    at(hostname.replaceAll('.', '-')).concat('.example'),
    at(`${host}@evil.example`),
    at(`user:password@${host}@evil.example`),
    at(`evil.example/${host}`),
    at(`evil.example/?${own}`),
    at(`evil.example/#${own}`),
    at(`evil.example\\@${host}`),
    at(`${hostname}:1`),
    own.startsWith('https:') ? own.replace('https:', 'http:') : own.replace('http:', 'https:'),
    'https://evil.example',
    'null',
  ];
}
