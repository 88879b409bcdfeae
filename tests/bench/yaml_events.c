/* SPDX-License-Identifier: Apache-2.0
   The peer of reading YAML: libyaml's event parser over a file, every event thrown away. Prints their number. */
#include <stdio.h>
#include <yaml.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    FILE *file = fopen(argv[1], "rb");
    if (file == NULL) {
        perror(argv[1]);
        return 1;
    }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return 1;
    yaml_parser_set_input_file(&parser, file);
    unsigned long events = 0;
    for (int done = 0; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            fprintf(stderr, "%s: %s\n", argv[1], parser.problem);
            return 1;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        ++events;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    fclose(file);
    printf("%lu events\n", events);
    return 0;
}
