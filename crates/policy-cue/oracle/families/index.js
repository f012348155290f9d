import { documents } from "./documents.js";
import { expressions } from "./expressions.js";
import { generate } from "./generated.js";
import { programs } from "./programs.js";

export const families = { documents, expressions, generated: generate(2200, 1), programs };
