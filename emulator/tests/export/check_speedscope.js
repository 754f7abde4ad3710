// Checks a file against speedscope's schema: node check_speedscope.js TOOLS FILE
const fs = require("fs");
const [tools, file] = process.argv.slice(2);
const modules = tools + "/node_modules/";
const Ajv = require(modules + "ajv").default;
const schema = JSON.parse(fs.readFileSync(modules + "speedscope/dist/release/file-format-schema.json"));
const validate = new Ajv({ strict: false }).compile(schema);
const profile = JSON.parse(fs.readFileSync(file));
if (!validate(profile)) {
  console.error(validate.errors.slice(0, 10));
  process.exit(1);
}
for (const { name, weights } of profile.profiles) {
  console.log(name, weights.reduce((sum, weight) => sum + weight, 0));
}
