// Packets in a ring of switches: each source waits, sends to some other, and each link takes a time for a packet.
`timescale 1ns / 1ns

module node #(parameter ID = 0, parameter COUNT = 16, parameter DEPTH = 32) (
    input wire arrives, input wire [31:0] packet_in,
    output reg leaves, output reg [31:0] packet_out
);
    reg [31:0] queue [0:DEPTH - 1];
    integer first, length, sent, received, dropped, forwarded, time_sum, state, wait_time, target;
    event work;

    function integer draw(input integer limit);
        begin
            state = (state * 1103515245 + 12345) & 32'h7fffffff;
            draw = (state >> 8) % limit;
        end
    endfunction

    task put(input [31:0] packet);
        if (length == DEPTH) dropped = dropped + 1;
        else begin
            queue[(first + length) % DEPTH] = packet;
            length = length + 1;
            -> work;
        end
    endtask

    initial begin
        first = 0; length = 0; sent = 0; received = 0; dropped = 0; forwarded = 0; time_sum = 0;
        state = 7919 * (ID + 1);
        leaves = 0;
        forever begin
            wait_time = 20 + draw(400);
            #wait_time;
            target = (ID + 1 + draw(COUNT - 1)) % COUNT;
            sent = sent + 1;
            // 24 bits of the time, 8 of the target.
            put({$time, target[7:0]});
        end
    end

    always @(posedge arrives) begin
        if (packet_in[7:0] == ID) begin
            received = received + 1;
            time_sum = time_sum + (($time - packet_in[31:8]) & 24'hffffff);
        end else begin
            forwarded = forwarded + 1;
            put(packet_in);
        end
    end

    initial forever begin
        while (length == 0) @work;
        packet_out = queue[first];
        first = (first + 1) % DEPTH;
        length = length - 1;
        #(10 + packet_out[11:8]) leaves = 1;
        #2 leaves = 0;
    end
endmodule

module ring;
    parameter COUNT = 16;
    parameter END = 60000;
    wire [COUNT - 1:0] link;
    wire [31:0] packet [0:COUNT - 1];
    genvar i;
    generate
        for (i = 0; i < COUNT; i = i + 1) begin : at
            node #(.ID(i), .COUNT(COUNT)) n (
                .arrives(link[(i + COUNT - 1) % COUNT]), .packet_in(packet[(i + COUNT - 1) % COUNT]),
                .leaves(link[i]), .packet_out(packet[i]));
            initial #(END) $display("%0d: %0d sent, %0d received, %0d forwarded, %0d dropped, %0d ns", i,
                n.sent, n.received, n.forwarded, n.dropped, n.time_sum);
        end
    endgenerate
    initial #(END + 1) $finish;
endmodule
