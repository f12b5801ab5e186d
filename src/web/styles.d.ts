// Style sheets are imported for the bundler alone.

declare module "*.css";
