const response = await fetch('{{url}}', {
  headers: { Authorization: `Bearer ${process.env.CATALOG_API_KEY ?? ''}` },
});
const body = await response.json();
if (!response.ok) {
  console.error(response.status, body.detail);
  process.exit(1);
}
console.log(body);
