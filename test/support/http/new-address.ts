let addresses = 0;

/** @returns a client's address that no other request has, since keys that fail are counted by address */
export function newAddress(): string {
  addresses += 1;
  return ['10', addresses >> 16, (addresses >> 8) & 255, addresses & 255].join('.');
}
